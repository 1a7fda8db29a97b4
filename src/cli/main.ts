#!/usr/bin/env node
import { Command, CommanderError } from 'commander'
import { VersoError, ConfigError } from '../errors.js'
import { fileFault } from './file-error.js'
import { packageVersion } from './package-files.js'

const FAILED = 1
const WRONG_USAGE = 2
const STACK_LEVELS: readonly string[] = ['debug', 'trace']

const EXAMPLES = `
Examples:
  $ verso demo                       a sample with contacts, to look around
  $ verso init                       write a starter folder of models
  $ verso user add ada --admin       the first user
  $ verso serve --models models      serve your own models

"verso help serve" has all settings; each is a flag and a variable of the environment.`

const program = new Command('verso')
  .description('Records of your own models over HTTP, versioned: nobody overwrites an edit unseen.')
  .version(packageVersion())
  .addHelpText('after', EXAMPLES)
  .configureHelp({ helpWidth: Math.min(process.stdout.columns || 100, 110) })
  .exitOverride()

// In the order of the help. Each is loaded when it is meant: most need neither a web server nor a compiler.
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  demo: async () => (await import('./serve/demo.js')).addDemo,
  serve: async () => (await import('./serve/serve.js')).addServe,
  user: async () => (await import('./accounts/user.js')).addUserCommands,
  role: async () => (await import('./accounts/role.js')).addRoleCommands,
  key: async () => (await import('./accounts/key.js')).addKeyCommands,
  schema: async () => (await import('./schema/schema.js')).addSchema,
  history: async () => (await import('./schema/history.js')).addHistoryCommands,
  verify: async () => (await import('./schema/verify.js')).addVerify,
  models: async () => (await import('./schema/models-command.js')).addModelsCommands,
  init: async () => (await import('./schema/init.js')).addInit,
  export: async () => (await import('./data/export.js')).addExport,
  import: async () => (await import('./data/import.js')).addImport,
  prove: async () => (await import('./prove/prove-command.js')).addProve,
}
const argv = asFlag(process.argv)
const [, , meant = ''] = argv
// Help and whoever makes a slip of the pen are shown all of them.
for (const name of Object.hasOwn(commands, meant) ? [meant] : Object.keys(commands))
  (await commands[name]?.())?.(program)

// Whoever reads our words may stop: `verso export … | head -3`. The work goes on to its end.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })

// A server has its own listener, which writes into its log.
process.on('uncaughtException', (error) => {
  if (process.listenerCount('uncaughtException') === 1) process.exit(explain(error))
})

try {
  await program.parseAsync(argv)
} catch (error) {
  // At once: a connection that failed half-way would keep the process alive.
  process.exit(explain(error))
}

/** `verso help user add` is `verso user add --help`: by itself, help knows the first word alone. */
function asFlag(argv: readonly string[]): string[] {
  const [node = '', script = '', first, ...words] = argv
  const isDeep = first === 'help' && words.length > 1
  return isDeep ? [node, script, ...words, '--help'] : [...argv]
}

/** Says what went wrong, if it was not said already; answers the exit code. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE
  process.stderr.write(`${wordsFor(error)}\n`)
  return FAILED
}

/** A sentence. The stack of an error that nobody expected is for whoever looks for the defect. */
function wordsFor(error: unknown): string {
  if (error instanceof ConfigError || error instanceof VersoError) return error.message
  const fault = fileFault(error)
  if (fault !== undefined) return `The command has failed:\n  - ${fault}`
  if (!(error instanceof Error)) return `The command has failed: ${String(error)}`
  if (STACK_LEVELS.includes(process.env['VERSO_LOG_LEVEL'] ?? '')) return error.stack ?? error.message
  return `The command has failed: ${error.message}. With VERSO_LOG_LEVEL=debug it says where`
}
