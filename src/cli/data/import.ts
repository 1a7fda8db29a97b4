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
import { collect, meantModel } from './export.js'
import { fileFault, translateFileFault } from '../file-error.js'
import { copyFrom, type CopyFlags } from './import-from.js'
import { readLines } from './ndjson-file.js'
import { loadModels } from '../models/models.js'
import { openApp } from '../open.js'
import { Progress } from '../terminal/progress.js'
import { addSettings, readSettings, type Flags } from '../settings/settings.js'
import type { ModelFile } from './staging.js'

const EXAMPLES = `
Files are named after their models: crm.Contact.ndjson, crm.Contact.csv. All lines are checked before the first one is
written. An import that was interrupted goes on when the same command is run again.

Examples:
  $ verso import --models models backup
  $ verso import --models models people.csv --model crm.Contact
  $ VERSO_FROM_PASSWORD=… verso import --models models --from https://old.example.org --username ada --spool copy`

const EXTENSIONS = ['.ndjson', '.csv'] as const

type ImportFlags = Flags & CopyFlags

export function addImport(program: Command): void {
  const command = program
    .command('import')
    .description('read records from files or from another service, with their ids and versions')
  addSettings(command, 'import')
    .argument('[files...]', 'files or folders')
    .option(
      '--model <name>',
      'the model of a single file that is named otherwise; with --from, a model to copy, several times for several',
      collect,
    )
    .option('--from <url>', 'a running service whose records are to be copied')
    .option('--username <name>', 'who logs in there')
    .option('--password-stdin', 'read the password from standard input, instead of VERSO_FROM_PASSWORD')
    .option('--spool <folder>', 'where the copy is kept; needed with --from')
    .addHelpText('after', EXAMPLES)
    .action(async (places: readonly string[], flags: ImportFlags) => {
      const values = readSettings('import', flags, process.env)
      const sources = await loadModels(values.models ?? '')
      const catalog = Catalog.from(sources)
      const files =
        flags.from === undefined
          ? filesOf(catalog, places, flags.model)
          : await copyFrom(catalog, places, flags, values.fromPassword)
      const app = await openApp({ settings: { db: values.db }, models: sources })
      try {
        await importFiles(app, files).catch((error: unknown) => {
          throw translateFileFault('The import has stopped; run it again to go on', error)
        })
      } finally {
        await app.close()
      }
    })
}

/** Imports and says what came of it. */
async function importFiles(app: App, files: readonly ModelFile[]): Promise<void> {
  const progress = new Progress()
  const bytes = files.reduce((sum, { file }) => sum + statSync(file).size, 0)
  const sources = files.map(({ file, model }) =>
    // The files were found before the database was opened: by another catalog of the same models.
    sourceOf({ file, model: app.catalog.get(model.name) }, (read) => {
      progress.advance(read, 0)
    }),
  )
  let stage = ''
  const sinceMs = performance.now()
  try {
    const imported = await importRecords(app, sources, {
      onProgress: (now, _, lines) => {
        if (now !== stage) progress.begin(now === 'check' ? 'checking ' : 'importing', bytes)
        stage = now
        progress.advance(0, lines)
      },
    })
    progress.end()
    process.stdout.write(summaryOf(imported, (performance.now() - sinceMs) / 1_000))
  } finally {
    progress.end()
  }
}

function sourceOf({ file, model }: ModelFile, onBytes: (bytes: number) => void): ImportSource {
  const isCsv = file.endsWith('.csv')
  const contents = new ContentFolder(path.dirname(file))
  return {
    ...{ name: file, model, content: (sha256) => contents.open(sha256) },
    read: () => (isCsv ? readCsv(file, model, onBytes) : readLines(file, onBytes)),
  }
}

function summaryOf({ created, existing, createdUsers }: ImportResult, seconds: number): string {
  const rate = Math.round((created + existing) / Math.max(seconds, 0.001))
  const lines = [
    `imported ${pluralize(created, 'record')}, ${existing} ${existing === 1 ? 'was' : 'were'} there already, in ${seconds.toFixed(1)} s (${rate} a second)`,
    ...(createdUsers.length > 0
      ? [
          `made ${pluralize(createdUsers.length, 'user')} who ${createdUsers.length === 1 ? 'was' : 'were'} named and not there, disabled: ` +
            createdUsers.slice(0, 10).join(', ') +
            (createdUsers.length > 10 ? ' …' : ''),
        ]
      : []),
  ]
  return `${lines.join('\n')}\n`
}

/** Files by the models that their names say, every fault at once. */
export function filesOf(
  catalog: Catalog,
  places: readonly string[],
  named: readonly string[] | undefined,
): readonly ModelFile[] {
  const faults: string[] = []
  if (places.length === 0) faults.push('name a file or a folder')
  const files = places.flatMap((place) => filesAt(place, faults))
  const [only] = files
  if (named && (files.length !== 1 || named.length !== 1))
    faults.push(`--model names the model of one file, and there are ${files.length}`)
  const models = listTransferredModels(catalog)
  const known = models.map(({ name }) => name)
  const found = files.flatMap((file) => {
    const name = named && file === only ? (named[0] ?? '') : path.basename(file, path.extname(file))
    const model = models.find((each) => each.name === name)
    if (!model)
      faults.push(`${file}: there is no model "${name}"${meantModel(name, known)}; --model names it`)
    return model ? [{ file, model }] : []
  })
  if (faults.length > 0) throw new ConfigError('Nothing was imported', faults)
  return found
}

function filesAt(place: string, faults: string[]): string[] {
  try {
    return foundAt(place, faults)
  } catch (error) {
    const fault = fileFault(error)
    if (fault === undefined) throw error
    faults.push(fault)
    return []
  }
}

function foundAt(place: string, faults: string[]): string[] {
  const stats = statSync(place, { throwIfNoEntry: false })
  if (!stats) faults.push(`${place}: there is no such file or folder`)
  if (!stats?.isDirectory()) {
    if (stats && !isKnown(place)) faults.push(`${place}: a file ends in ${EXTENSIONS.join(' or ')}`)
    return stats && isKnown(place) ? [place] : []
  }
  const files = readdirSync(place).filter(isKnown).sort()
  if (files.length === 0)
    faults.push(`${place}: there is no file in it that ends in ${EXTENSIONS.join(' or ')}`)
  return files.map((name) => path.join(place, name))
}

function isKnown(file: string): boolean {
  return EXTENSIONS.some((extension) => file.endsWith(extension))
}
