// Records of another service → files in a folder, ready to be imported.
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import { pluralize } from '../../model/values/plural.js'
import { sortTargetsFirst } from '../../formats/transfer-fields.js'
import { chooseModels } from './export.js'
import { askPassword } from '../terminal/ask-password.js'
import { Progress } from '../terminal/progress.js'
import { Remote } from './remote.js'
import { spoolModel, type ModelFile } from './staging.js'

export interface CopyFlags {
  readonly model?: readonly string[]
  readonly from?: string
  readonly username?: string
  readonly passwordStdin?: boolean
  readonly spool?: string
}

/** Before the database is opened: as long as the other side is asked, nothing is held up here. */
export async function copyFrom(
  catalog: Catalog,
  places: readonly string[],
  { from = '', username, passwordStdin = false, spool, model: named }: CopyFlags,
  variable: string | undefined,
): Promise<readonly ModelFile[]> {
  const faults = [
    ...(/^https?:\/\//.test(from) && URL.canParse(from)
      ? []
      : ['--from must be an address such as https://old.example.org']),
    ...(username === undefined ? ['--username is missing: who logs in there?'] : []),
    ...(spool === undefined ? ['--spool is missing: name a folder for the copy'] : []),
    ...(passwordStdin || variable !== undefined
      ? []
      : ['the password is missing: set VERSO_FROM_PASSWORD, or use --password-stdin']),
    ...(places.length > 0 ? ['name files, or --from, and not both'] : []),
  ]
  if (faults.length > 0) throw new ConfigError('Nothing was imported', faults)
  const chosen = chooseModels(catalog, named)
  const password = passwordStdin ? await askPassword(username ?? '', true) : (variable ?? '')
  const remote = new Remote(from, { username: username ?? '', password })
  await remote.login()
  const progress = new Progress()
  const files: ModelFile[] = []
  const missing: string[] = []
  // Those who refer first: what is added there meanwhile is then copied with all that it refers to.
  for (const model of sortTargetsFirst(catalog, chosen).reverse()) {
    progress.begin(`copying ${model.name}`, 0)
    const { file, records } = await spoolModel(remote, model, spool ?? '', (count) => {
      progress.advance(0, count)
    })
    progress.end()
    if (file === undefined) missing.push(model.name)
    else files.push({ file, model })
    process.stdout.write(
      file === undefined ? `${model.name}: is not there\n` : `${file}: ${pluralize(records, 'record')}\n`,
    )
  }
  if (named && missing.length > 0)
    throw new ConfigError(
      'Nothing was imported',
      missing.map((name) => `${from}: there is no model ${name}`),
    )
  if (files.length === 0)
    throw new ConfigError('Nothing was imported', [`${from}: there is none of these models`])
  return files
}
