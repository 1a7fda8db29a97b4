// The relations of an import batch: inserts the links of its records, and locks the records that they refer to.
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import { isOwnLink } from '../../formats/transfer-fields.js'
import type { LineReader } from '../../formats/ndjson.js'
import { insertLinks, type RowWithId } from '../../store/records/bulk.js'
import type { Transaction } from '../../store/engine/database.js'
import { lockReferenced } from '../../store/records/references.js'
import type { Table } from '../../store/sql/table.js'
import type { App } from '../context/app.js'
import type { CheckedImport } from './import-check.js'
import type { NumberedLine } from './import-existing.js'
import { LineError } from './import-source.js'

/** The records that exist, or that the import will create. */
export interface ImportReferences {
  readonly app: App
  readonly checked: CheckedImport
  /** Models without further records in this import. */
  readonly complete: ReadonlySet<Model>
}

/** Inserts the links of new records. */
export async function insertRecordLinks(
  tx: Transaction,
  { model, dialect }: Table,
  rows: readonly RowWithId[],
): Promise<void> {
  for (const field of model.fields.values()) {
    if (!isOwnLink(field)) continue
    const pairs = rows.flatMap(({ id, values }) =>
      ((values[field.name] ?? []) as { readonly id: number }[]).map((member) => [id, member.id] as const),
    )
    if (pairs.length > 0) await insertLinks(tx, dialect, { model, field }, pairs)
  }
}

/** Locks the referenced records that exist. A missing one must come later in this import, and the check pass has already found it in the files. */
export async function lockReferencedRecords(
  { app, checked, complete }: ImportReferences,
  tx: Transaction,
  reader: LineReader,
  lines: readonly NumberedLine[],
): Promise<void> {
  const references = new Map<Model, Map<number, readonly [NumberedLine, Field]>>()
  for (const line of lines) {
    reader.forEachReference(line, (field, id) => {
      const target = field.relation && app.catalog.getTarget(field.relation)
      if (!target) return
      const ids = references.get(target) ?? new Map<number, readonly [NumberedLine, Field]>()
      if (!ids.has(id)) ids.set(id, [line, field])
      references.set(target, ids)
    })
  }
  for (const [target, ids] of references) {
    const existing = await lockReferenced(tx, app.tables.of(target), [...ids.keys()])
    for (const [id, [{ line }, field]] of ids) {
      const isToCome = !complete.has(target) && checked.ids.get(target)?.has(id) === true
      if (!existing.has(id) && !isToCome)
        throw new LineError(line, `${field.name} refers to ${target.name} ${id}, which does not exist`)
    }
  }
}
