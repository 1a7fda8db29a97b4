// Lines whose ids already exist: an equal record is skipped, a different record with the same id is an error.
import { listUsernameSpellings } from '../../model/catalog/auth-models.js'
import type { Field } from '../../model/values/field.js'
import { deriveFileValues, isSameFile } from '../../model/catalog/file-metadata.js'
import { isOwnedList } from '../../model/definition/model.js'
import { isSameValue, type Value } from '../../model/values/value.js'
import {
  isFileField,
  isUserReference,
  listTransferFields,
  selectTransferFields,
  listUsernames,
} from '../../formats/transfer-fields.js'
import { toLine, type ImportLine, type LineReader } from '../../formats/ndjson.js'
import { findByIds, readVersions } from '../../store/records/bulk.js'
import type { Queryable } from '../../store/engine/database.js'
import { findAnonymousUpdates, type LoggedUpdate } from '../../store/log/log.js'
import { compileSelection } from '../../store/sql/select.js'
import type { App } from '../context/app.js'
import { addFileMetadata } from './export-files.js'

/** A line with its number in the file. */
export interface NumberedLine extends ImportLine {
  readonly line: number
}

export function toNumberedLine(line: number, { id, version, values, keys }: ImportLine): NumberedLine {
  return { line, id, version, values, keys }
}

export interface ExistingRecords {
  /** Ids that exist, with equal or different values. */
  readonly ids: ReadonlySet<number>
  readonly errors: readonly { readonly line: number; readonly message: string }[]
}

/**
 * Compares lines with existing records. The record must have the same version (or a later one that only imports caused) and the same values.
 * The version alone is not enough: in another database, record 5 at version 0 may be an unrelated record.
 */
export async function findExisting(
  db: Queryable,
  app: App,
  { model }: LineReader,
  lines: readonly NumberedLine[],
): Promise<ExistingRecords> {
  const comparison: ComparisonContext = { db, app, model }
  const table = app.tables.of(model)
  const versions = await readVersions(
    db,
    table,
    lines.flatMap(({ id }) => id ?? []),
  )
  if (versions.size === 0) return { ids: new Set(), errors: [] }
  const errors: { line: number; message: string }[] = []
  const alike: NumberedLine[] = []
  const raised = await findOwnersUpdatedByImports(comparison, lines, versions)
  for (const line of lines) {
    const here = line.id === undefined ? undefined : versions.get(line.id)
    if (here === line.version || raised.has(line.id ?? 0)) alike.push(line)
    else if (here !== undefined) {
      const message = `${model.name} ${line.id} is at version ${here} in this database, not ${line.version}`
      errors.push({ line: line.line, message })
    }
  }
  errors.push(...(await findDifferentLines(comparison, alike, raised)))
  return { ids: new Set(versions.keys()), errors }
}

interface ComparisonContext {
  readonly db: Queryable
  readonly app: App
  readonly model: LineReader['model']
}

/** Fields that change when an import increments the version of an owner. */
const OWNER_UPDATE_FIELDS: readonly string[] = ['updatedOn', 'updatedBy']

/**
 * Returns owners with a later version than in the files, if only imports that added list members caused it. They count as equal; otherwise an
 * import that was interrupted after such an update could not continue.
 */
async function findOwnersUpdatedByImports(
  { db, app, model }: ComparisonContext,
  lines: readonly NumberedLine[],
  versions: ReadonlyMap<number, number>,
): Promise<ReadonlySet<number>> {
  const lists = [...model.fields.values()].filter(isOwnedList).map(({ name }) => name)
  const later = lines.filter(({ id = 0, version }) => (versions.get(id) ?? 0) > version)
  if (lists.length === 0 || later.length === 0) return new Set()
  const ids = later.map(({ id = 0 }) => id)
  const updates = await findAnonymousUpdates(db, app.db.dialect, model.name, ids)
  const isRaise = ({ changes }: LoggedUpdate) => Object.keys(changes).every((name) => lists.includes(name))
  const raised = later.filter(({ id = 0, version }) => {
    const since = (updates.get(id) ?? []).filter((update) => update.version > version)
    return since.length === (versions.get(id) ?? 0) - version && since.every(isRaise)
  })
  return new Set(raised.map(({ id = 0 }) => id))
}

async function findDifferentLines(
  { db, app, model }: ComparisonContext,
  lines: readonly NumberedLine[],
  raised: ReadonlySet<number>,
): Promise<{ line: number; message: string }[]> {
  if (lines.length === 0) return []
  const select = compileSelection(app.db.dialect, selectTransferFields(app.catalog, model))
  const ids = lines.map(({ id = 0 }) => id)
  const table = app.tables.of(model)
  const here = await addFileMetadata(db, table, await findByIds(db, table, ids, { select }))
  const records = new Map(here.map((each) => [each.id, each]))
  const fields = listTransferFields(model).filter((field) => !isDerivedField(model, field))
  return lines.flatMap(({ id = 0, line, keys, values }) => {
    const record = records.get(id)
    const here = record && toLine(fields, record)
    const other = fields.find(
      (field) =>
        keys.includes(field.name) &&
        !(raised.has(id) && OWNER_UPDATE_FIELDS.includes(field.name)) &&
        !isSameImportValue(field, (here?.[field.name] ?? null) as Value, values[field.name] ?? null),
    )
    if (!other) return []
    return [
      { line, message: `${model.name} ${id} already exists in this database with a different ${other.name}` },
    ]
  })
}

/** Derived fields need no comparison, because the fields they depend on are compared. */
function isDerivedField(model: LineReader['model'], { name, computed }: Field): boolean {
  return computed !== undefined || name in deriveFileValues(model, undefined)
}

function isSameImportValue(field: Field, here: Value, there: Value): boolean {
  if (isFileField(field)) return isSameFile(here, there)
  // A user name in the files may match an account with another spelling.
  return (
    isSameValue(here, there) ||
    (isUserReference(field) && isSameValue(foldUsernames(here), foldUsernames(there)))
  )
}

function foldUsernames(value: Value): Value {
  const names = listUsernames([value ?? []].flat()).map((name) => listUsernameSpellings(name).at(-1) ?? name)
  return [...new Set(names)].sort()
}
