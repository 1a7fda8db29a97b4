// Copies records of another service into files that an import reads.
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { pluralize } from '../../model/values/plural.js'
import { sortTargetsFirst } from '../../formats/transfer-fields.js'
import { selectModels } from './model-selection.js'
import { readPassword } from '../terminal/ask-password.js'
import { createProgressBar } from '../terminal/progress.js'
import { RemoteClient } from './remote.js'
import { stageModel } from './staging.js'

/** A file with the records of one model. */
export interface DataFile {
  readonly file: string
  readonly model: Model
}

export interface CopyFlags {
  readonly model?: readonly string[]
  readonly from?: string
  readonly username?: string
  readonly passwordStdin?: boolean
  readonly staging?: string
}

/** Runs before the database is opened, so that no connection is held while the remote service responds. */
export async function copyFromRemote(
  catalog: Catalog,
  inputs: readonly string[],
  { from = '', username, passwordStdin = false, staging, model: modelNames }: CopyFlags,
  environmentPassword: string | undefined,
): Promise<readonly DataFile[]> {
  const errors = [
    ...(/^https?:\/\//.test(from) && URL.canParse(from)
      ? []
      : ['--from must be an address such as https://old.example.org']),
    ...(username === undefined ? ['--username is missing: name a user of that service'] : []),
    ...(staging === undefined ? ['--staging is missing: name a folder for the copied records'] : []),
    ...(passwordStdin || environmentPassword !== undefined
      ? []
      : ['the password is missing: set VERSO_FROM_PASSWORD, or use --password-stdin']),
    ...(inputs.length > 0 ? ['use either files or --from, not both'] : []),
  ]
  if (errors.length > 0) throw new ConfigError('Nothing was imported', errors)
  const chosen = selectModels(catalog, modelNames)
  const password = passwordStdin ? await readPassword(username ?? '', true) : (environmentPassword ?? '')
  const remote = new RemoteClient(from, { username: username ?? '', password })
  await remote.login()
  const progress = await createProgressBar()
  const files: DataFile[] = []
  const missing: string[] = []
  // Referring models come first: a record that is added during the copy is then copied with all its targets.
  for (const model of sortTargetsFirst(catalog, chosen).reverse()) {
    progress.begin(`copying ${model.name}`, 0)
    const onRecords = (count: number) => {
      progress.advance(0, count)
    }
    const { file, records } = await stageModel(model, {
      remote,
      folder: staging ?? '',
      onRecords,
    }).finally(() => {
      progress.end()
    })
    if (file === undefined) missing.push(model.name)
    else files.push({ file, model })
    process.stdout.write(
      file === undefined
        ? `${model.name}: skipped, ${from} does not have this model\n`
        : `${file}: ${pluralize(records, 'record')}\n`,
    )
  }
  if (modelNames && missing.length > 0)
    throw new ConfigError(
      'Nothing was imported',
      missing.map((name) => `${from} does not have the model ${name}`),
    )
  if (files.length === 0) throw new ConfigError('Nothing was imported', [`${from} has none of these models`])
  return files
}
