import { statSync } from 'node:fs'
import { open, rename, rm, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { Option, type Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { UTF8_BOM, formatCsvLine, formatExactCell } from '../../formats/csv.js'
import { pluralize } from '../../model/values/plural.js'
import type { Model } from '../../model/definition/model.js'
import { sortTargetsFirst, listTransferFields } from '../../formats/transfer-fields.js'
import { formatLine } from '../../formats/ndjson.js'
import { exportModel } from '../../service/transfer/export.js'
import type { ExportApp } from '../../service/transfer/export-files.js'
import { countRows } from '../../store/records/bulk.js'
import { PRIVATE_FILE_MODE, makeFolder } from '../../store/engine/private-files.js'
import { Tables } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { ContentFolder, EXPORT_FAILED } from './content-folder.js'
import { selectModels } from './model-selection.js'
import { toFileConfigError } from '../file-error.js'
import { loadCatalog } from '../models/models.js'
import { appendOption } from '../app-command.js'
import { requireDatabaseFile, requireMatchingTables, useDatabase } from '../open.js'
import { createProgressBar } from '../terminal/progress.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Writes one file for each model, such as crm.Contact.ndjson. A file appears when it is complete, and replaces a file of the
same name. The contents of binary fields are written to the subfolder "files", named by their SHA-256.

Examples:
  $ verso export --models models --out backup
  $ verso export --models models --out tables --format csv --model crm.Contact
  $ verso export --models models --out tables --format csv --spreadsheet`

const NOTHING_EXPORTED = 'Nothing was exported'
const EXPORT_FORMATS = ['ndjson', 'csv'] as const
type ExportFormat = (typeof EXPORT_FORMATS)[number]

interface ExportFlags extends Flags {
  readonly out: string
  readonly format: ExportFormat
  readonly model?: readonly string[]
  readonly spreadsheet?: boolean
}

export function addExportCommand(program: Command): void {
  const command = program.command('export').description('export records to files, of all models or of some')
  addSettingFlags(command, 'export')
    .requiredOption('--out <folder>', 'output folder')
    .option('--model <name>', 'export only this model; repeat for several', appendOption)
    .addOption(
      new Option('--format <format>', 'file format: ndjson (one JSON object per line) or csv')
        .choices(EXPORT_FORMATS)
        .default('ndjson'),
    )
    .option('--spreadsheet', 'escape formulas for spreadsheets; needs --format csv; cannot be imported again')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: ExportFlags) => {
      const { db, models } = readSettings('export', flags, process.env)
      if (flags.spreadsheet && flags.format !== 'csv')
        throw new ConfigError(NOTHING_EXPORTED, ['--spreadsheet needs --format csv'])
      requireOutputFolder(flags.out)
      const catalog = await loadCatalog(models ?? '')
      const chosen = selectModels(catalog, flags.model)
      requireDatabaseFile(db)
      await useDatabase(db, async (database) => {
        await requireMatchingTables(database, catalog, { url: db, heading: NOTHING_EXPORTED })
        const exportApp = { catalog, db: database, tables: new Tables(database.dialect, catalog) }
        await exportModels(exportApp, chosen, flags).catch((error: unknown) => {
          throw toFileConfigError(EXPORT_FAILED, error)
        })
      })
    })
}

function requireOutputFolder(out: string): void {
  let isFile: boolean
  try {
    isFile = statSync(out, { throwIfNoEntry: false })?.isDirectory() === false
  } catch (error) {
    throw toFileConfigError(NOTHING_EXPORTED, error)
  }
  if (isFile) throw new ConfigError(NOTHING_EXPORTED, [`--out ${out} is a file; name a folder`])
}

/**
 * Exports referring models before their targets. Each file is a snapshot of its own; in this order, a record that is
 * added meanwhile is exported with all its targets.
 */
async function exportModels(
  app: ExportApp,
  models: readonly Model[],
  { out, format, spreadsheet = false }: ExportFlags,
): Promise<void> {
  makeFolder(out)
  const progress = await createProgressBar()
  const contents = new ContentFolder(out)
  for (const model of sortTargetsFirst(app.catalog, models).reverse()) {
    const total = process.stderr.isTTY ? await countRows(app.db.queryPool, app.tables.of(model)) : 0
    progress.begin(model.name, total)
    const file = path.join(out, `${model.name}.${format}`)
    const formatter = format === 'csv' ? createCsvFormatter(model, spreadsheet) : createNdjsonFormatter(model)
    const records = await writeAtomically(file, async (handle) => {
      await handle.write(formatter.header)
      let count = 0
      for await (const page of exportModel(app, model, (file, opened) => contents.ensure(file, opened))) {
        await handle.write(page.map(formatter.formatRecord).join(''))
        count += page.length
        progress.advance(page.length, page.length)
      }
      return count
    }).finally(() => {
      progress.end()
    })
    process.stdout.write(`${file}: ${pluralize(records, 'record')}\n`)
  }
}

interface RecordFormatter {
  readonly header: string
  readonly formatRecord: (record: WireRecord) => string
}

function createNdjsonFormatter(model: Model): RecordFormatter {
  const fields = listTransferFields(model)
  return { header: '', formatRecord: (record) => `${formatLine(fields, record)}\n` }
}

function createCsvFormatter(model: Model, isForSpreadsheet: boolean): RecordFormatter {
  const fields = listTransferFields(model)
  const header = formatCsvLine(['id', 'version', ...fields.map(({ name }) => name)])
  return {
    header: isForSpreadsheet ? UTF8_BOM + header : header,
    formatRecord: (record) =>
      formatCsvLine([
        ...[String(record.id), String(record.version)],
        ...fields.map((field) => formatExactCell(field, record[field.name], isForSpreadsheet)),
      ]),
  }
}

/** Writes to a temporary name and renames after fsync, so that an existing file is always complete. */
async function writeAtomically<T>(file: string, write: (handle: FileHandle) => Promise<T>): Promise<T> {
  const unfinished = `${file}.${process.pid}.part`
  const handle = await open(unfinished, 'w', PRIVATE_FILE_MODE)
  try {
    const result = await write(handle)
    await handle.sync()
    await handle.close()
    await rename(unfinished, file)
    return result
  } catch (error) {
    await handle.close().catch(() => undefined)
    await rm(unfinished, { force: true })
    throw error
  }
}
