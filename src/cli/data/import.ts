import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { Catalog } from '../../model/catalog/catalog.js'
import { pluralize } from '../../model/values/plural.js'
import { listTransferredModels } from '../../formats/transfer-fields.js'
import type { App } from '../../service/context/app.js'
import { importRecords, type ImportResult } from '../../service/transfer/import.js'
import type { ImportSource } from '../../service/transfer/import-source.js'
import { ContentFolder } from './content-folder.js'
import { readCsv } from './csv-file.js'
import { suggestModel } from './model-selection.js'
import { appendOption } from '../app-command.js'
import { describeFileError, toFileConfigError } from '../file-error.js'
import { copyFromRemote, type CopyFlags, type DataFile } from './import-from.js'
import { readNdjson } from './ndjson-file.js'
import { loadCatalog } from '../models/models.js'
import { COMMAND_SETTINGS } from '../../service/context/settings.js'
import { openApp } from '../open.js'
import { createProgressBar } from '../terminal/progress.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
The name of a file is the name of its model: crm.Contact.ndjson, crm.Contact.csv. All lines are checked before the first
record is written. To resume an interrupted import, run the same command again.

Examples:
  $ verso import --models models backup
  $ verso import --models models people.csv --model crm.Contact
  $ VERSO_FROM_PASSWORD=… verso import --models models --from https://old.example.org --username ada --staging copy`

const DATA_EXTENSIONS = ['.ndjson', '.csv'] as const

type ImportFlags = Flags & CopyFlags

export function addImportCommand(program: Command): void {
  const command = program
    .command('import')
    .description('import records from files or from a running service, with their ids and versions')
  addSettingFlags(command, 'import')
    .argument('[files...]', 'files, or folders that contain them')
    .option(
      '--model <name>',
      'model of a single file that is not named after its model; with --from: copy only this model, repeat for several',
      appendOption,
    )
    .option('--from <url>', 'copy the records of the service at this address')
    .option('--username <name>', 'user name at that service; required with --from')
    .option(
      '--password-stdin',
      'read the password of that user from standard input instead of VERSO_FROM_PASSWORD',
    )
    .option(
      '--staging <folder>',
      'folder for the copied records, kept to resume an interrupted copy; required with --from',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (inputs: readonly string[], flags: ImportFlags) => {
      const values = readSettings('import', flags, process.env)
      const catalog = await loadCatalog(values.models ?? '')
      const files =
        flags.from === undefined
          ? findDataFiles(catalog, inputs, flags.model)
          : await copyFromRemote(catalog, inputs, flags, values.fromPassword)
      const app = await openApp({ settings: { ...COMMAND_SETTINGS, db: values.db }, models: catalog })
      try {
        await importFiles(app, files).catch((error: unknown) => {
          throw toFileConfigError('The import failed; to resume it, run the same command again', error)
        })
      } finally {
        await app.close()
      }
    })
}

/** Imports the files and prints a summary. */
async function importFiles(app: App, files: readonly DataFile[]): Promise<void> {
  const progress = await createProgressBar()
  const bytes = files.reduce((sum, { file }) => sum + statSync(file).size, 0)
  const sources = files.map(({ file, model }) =>
    // The files were matched with models of an earlier catalog; the App has its own.
    createImportSource({ file, model: app.catalog.get(model.name) }, (read) => {
      progress.advance(read, 0)
    }),
  )
  let stage = ''
  const sinceMs = performance.now()
  try {
    const imported = await importRecords(app, sources, {
      onProgress: (now, _, lines) => {
        if (now !== stage) progress.begin(now === 'check' ? 'checking' : 'importing', bytes)
        stage = now
        progress.advance(0, lines)
      },
    })
    progress.end()
    process.stdout.write(formatImportSummary(imported, (performance.now() - sinceMs) / 1_000))
  } finally {
    progress.end()
  }
}

function createImportSource({ file, model }: DataFile, onBytes: (bytes: number) => void): ImportSource {
  const isCsv = file.endsWith('.csv')
  const contents = new ContentFolder(path.dirname(file))
  return {
    name: file,
    model,
    content: (sha256) => contents.open(sha256),
    read: () => (isCsv ? readCsv(file, model, onBytes) : readNdjson(file, onBytes)),
  }
}

function formatImportSummary({ created, existing, createdUsers }: ImportResult, seconds: number): string {
  const rate = Math.round((created + existing) / Math.max(seconds, 0.001))
  const lines = [
    `imported ${pluralize(created, 'record')}, ${existing} existed already, in ${seconds.toFixed(1)} s (${rate} per second)`,
    ...(createdUsers.length > 0
      ? [
          `created ${pluralize(createdUsers.length, 'disabled user')} for user names in the records: ` +
            createdUsers.slice(0, 10).join(', ') +
            (createdUsers.length > 10 ? ' …' : ''),
        ]
      : []),
  ]
  return `${lines.join('\n')}\n`
}

/** Matches files with models by their names. Throws one error that lists all problems. */
function findDataFiles(
  catalog: Catalog,
  inputs: readonly string[],
  modelNames: readonly string[] | undefined,
): readonly DataFile[] {
  const errors: string[] = []
  if (inputs.length === 0) errors.push('name at least one file or folder, or use --from')
  const files = inputs.flatMap((input) => listDataFilesOrReport(input, errors))
  const [only] = files
  if (modelNames && (files.length !== 1 || modelNames.length !== 1))
    errors.push(`--model names the model of a single file, but there are ${files.length} files`)
  const models = listTransferredModels(catalog)
  const knownNames = models.map(({ name }) => name)
  const found = files.flatMap((file) => {
    const name = modelNames && file === only ? (modelNames[0] ?? '') : path.basename(file, path.extname(file))
    const model = models.find((each) => each.name === name)
    if (!model)
      errors.push(
        `${file}: there is no model "${name}"${suggestModel(name, knownNames)}; to name the model, use --model`,
      )
    return model ? [{ file, model }] : []
  })
  if (errors.length > 0) throw new ConfigError('Nothing was imported', errors)
  return found
}

function listDataFilesOrReport(input: string, errors: string[]): string[] {
  try {
    return listDataFiles(input, errors)
  } catch (error) {
    const message = describeFileError(error)
    if (message === undefined) throw error
    errors.push(message)
    return []
  }
}

function listDataFiles(input: string, errors: string[]): string[] {
  const stats = statSync(input, { throwIfNoEntry: false })
  if (!stats) errors.push(`${input}: the file or folder does not exist`)
  if (!stats?.isDirectory()) {
    if (stats && !hasDataExtension(input))
      errors.push(`${input}: the file name must end in ${DATA_EXTENSIONS.join(' or ')}`)
    return stats && hasDataExtension(input) ? [input] : []
  }
  const files = readdirSync(input).filter(hasDataExtension).sort()
  if (files.length === 0)
    errors.push(`${input}: the folder has no file whose name ends in ${DATA_EXTENSIONS.join(' or ')}`)
  return files.map((name) => path.join(input, name))
}

function hasDataExtension(file: string): boolean {
  return DATA_EXTENSIONS.some((extension) => file.endsWith(extension))
}
