// `verso types`: writes the types of models as TypeScript, from model files or from a running service.
import { readFileSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { describeModel, type ModelDescription } from '../../formats/model-description.js'
import { formatModelTypes } from '../../formats/model-types.js'
import { pluralize } from '../../model/values/plural.js'
import { toFileConfigError } from '../file-error.js'
import { loadCatalog } from '../models/models.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import { readDescriptions } from './remote-models.js'

const EXAMPLES = `
Write the types again after every change of the models. A user gets the types of the models and fields that they may see.

Examples:
  $ verso types --models models --out src/models.ts
  $ VERSO_TYPES_KEY=… verso types --url https://records.example.org --out src/models.ts
  $ verso types --models models --out src/models.ts --check     fails if the file is outdated`

const NOTHING_WRITTEN = 'No types were written'

/** Option values as commander passes them. */
interface TypesFlags {
  readonly models?: string
  readonly url?: string
  readonly user?: string
  readonly passwordStdin?: boolean
  readonly key?: string
  readonly out?: string
  readonly check?: boolean
}

export function addTypesCommand(program: Command): void {
  const command = program
    .command('types')
    .description('write the types of the models as TypeScript, for programs that use the client')
  addSettingFlags(command, 'types')
    .option('--url <url>', 'take the models of the running service at this address')
    .option('--user <name>', 'user name at that service; set the password in VERSO_TYPES_PASSWORD')
    .option('--password-stdin', 'read the password of that user from standard input')
    .option(
      '--key <key>',
      'API key instead of a user; other users of this computer can see it, so prefer VERSO_TYPES_KEY',
    )
    .option('--out <file>', 'write this file, or replace it; by default the types are printed')
    .option('--check', 'change nothing, and fail if the file of --out is outdated')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: TypesFlags) => {
      const errors = findFlagErrors(flags)
      if (errors.length > 0) command.error(errors.map((error) => `error: ${error}`).join('\n'))
      await writeTypes(await describeModels(flags), flags)
    })
}

function findFlagErrors({ models, url, user, key, passwordStdin, out, check }: TypesFlags): string[] {
  const remote = { user, key, 'password-stdin': passwordStdin }
  const needsUrl = Object.entries(remote).filter(([, value]) => url === undefined && value !== undefined)
  return [
    ...(url !== undefined && models !== undefined ? ['use either --models or --url, not both'] : []),
    ...needsUrl.map(([flag]) => `--${flag} needs --url`),
    ...(user !== undefined && key !== undefined ? ['use either --user or --key, not both'] : []),
    ...(passwordStdin && user === undefined && url !== undefined ? ['--password-stdin needs --user'] : []),
    ...(check && out === undefined ? ['--check needs --out: the file to compare'] : []),
  ]
}

async function describeModels(flags: TypesFlags): Promise<readonly ModelDescription[]> {
  const settings = readSettings('types', flags as Flags, process.env)
  if (flags.url !== undefined) {
    const { user, passwordStdin = false } = flags
    const key = flags.key ?? (user === undefined ? settings.typesKey : undefined)
    return readDescriptions(flags.url, { key, user, passwordStdin, password: settings.typesPassword })
  }
  if (settings.models === undefined)
    throw new ConfigError(NOTHING_WRITTEN, [
      'name the file or folder with your models with --models, or a running service with --url',
    ])
  const catalog = await loadCatalog(settings.models)
  return catalog.storedModels.map((model) => describeModel(catalog, model, null))
}

async function writeTypes(
  descriptions: readonly ModelDescription[],
  { out, check }: TypesFlags,
): Promise<void> {
  const text = formatModelTypes(descriptions)
  if (out === undefined) {
    process.stdout.write(text)
    return
  }
  try {
    if (check) requireCurrent(out, text)
    else writeFileSync(out, text)
  } catch (error) {
    throw toFileConfigError(check ? 'The types could not be compared' : NOTHING_WRITTEN, error)
  }
  const models = pluralize(descriptions.length, 'model')
  process.stdout.write(
    check ? `${out} has the types of ${models}\n` : `wrote the types of ${models} to ${out}\n`,
  )
}

/** Ignores line ends, which Git may convert. */
function requireCurrent(file: string, text: string): void {
  if (readFileSync(file, 'utf8').replaceAll('\r\n', '\n') === text) return
  throw new ConfigError('The types are outdated', [
    `${file} does not match the models; to write it again, run verso types without --check`,
  ])
}
