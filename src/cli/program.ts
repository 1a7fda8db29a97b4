// The command line: finds the command, runs it, and reports its errors.
import { Command, CommanderError } from 'commander'
import { readPackageVersion } from './package-files.js'
import { describeFailure } from './terminal/failure-text.js'
import { spellCommands, type CommandWord } from './terminal/invocation.js'

const EXIT_FAILURE = 1
const EXIT_USAGE = 2

const EXAMPLES = `
Examples:
  $ verso demo                       serve sample contacts to try it out
  $ verso init                       create a starter folder of models
  $ verso dev                        serve them, and reload them when you edit them
  $ verso user add ada --admin       add the first user
  $ verso serve --models models      serve your own models

"verso help serve" lists all settings. Each is a flag, an environment variable, or a line of a .env file.`

const program = new Command('verso')
  .description(
    'Versioned records of your own models over HTTP. Concurrent edits never overwrite each other silently.',
  )
  .version(readPackageVersion())
  .addHelpText('after', EXAMPLES)
  .configureHelp({ helpWidth: Math.min(process.stdout.columns || 100, 110) })
  .configureOutput({
    writeOut: (text) => process.stdout.write(spellCommands(text)),
    writeErr: (text) => process.stderr.write(spellCommands(text)),
  })
  .exitOverride()

// Listed in the order of the help. Each command is imported on demand: most need neither the web server nor the
// compiler.
const commands: Readonly<Record<CommandWord, () => Promise<(program: Command) => void>>> = {
  demo: async () => (await import('./serve/demo.js')).addDemoCommand,
  dev: async () => (await import('./serve/dev.js')).addDevCommand,
  serve: async () => (await import('./serve/serve.js')).addServeCommand,
  user: async () => (await import('./accounts/user.js')).addUserCommands,
  role: async () => (await import('./accounts/role.js')).addRoleCommands,
  key: async () => (await import('./accounts/key.js')).addKeyCommands,
  schema: async () => (await import('./schema/schema.js')).addSchemaCommand,
  history: async () => (await import('./schema/history.js')).addHistoryCommands,
  verify: async () => (await import('./schema/verify.js')).addVerifyCommand,
  doctor: async () => (await import('./doctor/doctor.js')).addDoctorCommand,
  models: async () => (await import('./schema/models-command.js')).addModelsCommands,
  hooks: async () => (await import('./schema/hooks-command.js')).addHooksCommands,
  types: async () => (await import('./schema/types.js')).addTypesCommand,
  init: async () => (await import('./schema/init.js')).addInitCommand,
  export: async () => (await import('./data/export.js')).addExportCommand,
  import: async () => (await import('./data/import.js')).addImportCommand,
  backup: async () => (await import('./data/backup.js')).addBackupCommand,
  restore: async () => (await import('./data/restore.js')).addRestoreCommand,
  prove: async () => (await import('./prove/prove-command.js')).addProveCommand,
}
const argv = expandHelpCommand(process.argv)
const [, , commandName = ''] = argv
// Help and unknown commands need the whole list.
for (const [name, load] of Object.entries(commands))
  if (name === commandName || !Object.hasOwn(commands, commandName)) (await load())(program)

// The reader of a pipe may close it early (`verso export … | head -3`). The command still runs to its end.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })

// A server adds its own listener, which logs the error.
process.on('uncaughtException', (error) => {
  if (process.listenerCount('uncaughtException') === 1) process.exit(reportFailure(error))
})

try {
  await program.parseAsync(argv)
} catch (error) {
  // Exit now: a connection that failed half-way would keep the process alive.
  process.exit(reportFailure(error))
}

/** Turns `verso help user add` into `verso user add --help`, because commander's help takes only one word. */
function expandHelpCommand(argv: readonly string[]): string[] {
  const [node = '', script = '', first, ...words] = argv
  const isDeep = first === 'help' && words.length > 1
  return isDeep ? [node, script, ...words, '--help'] : [...argv]
}

/** Prints the error unless commander has printed it already; returns the exit code. */
function reportFailure(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
  process.stderr.write(`${spellCommands(describeFailure(error))}\n`)
  return EXIT_FAILURE
}
