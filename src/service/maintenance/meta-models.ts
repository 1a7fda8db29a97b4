// Maintains the records of META_MODEL: one for each model.
import { META_MODEL } from '../../model/catalog/system-models.js'
import type { Values } from '../../model/values/value.js'
import { toValues } from '../../model/definition/record-values.js'
import { LONG_TRANSACTION, type Transaction } from '../../store/engine/database.js'
import { appendChanges, type NewChange } from '../../store/log/log.js'
import * as store from '../../store/records/records.js'
import { insertRows, deleteRows } from '../../store/records/write.js'
import { toReferrer, findReferringRecords } from '../../store/records/references.js'
import type { WireRecord } from '../../wire.js'
import type { App } from '../context/app.js'
import { diffValues } from '../write/write-rows.js'

type MetaModelApp = Pick<App, 'catalog' | 'db' | 'tables' | 'clock' | 'undeclaredReferrers'>

/** Above the number of models in practice. */
const MAX_STORED_MODELS = 100_000
const ALL_RECORDS = { after: 0, limit: MAX_STORED_MODELS }

/** Inserts and deletes meta records to match the catalog. Only reads if they match already. */
export async function syncMetaModels(app: MetaModelApp): Promise<void> {
  const { catalog, db } = app
  // Commands without models, such as `verso user add`, do not know which models the service has.
  if (catalog.models.length === 0) return
  const table = app.tables.of(META_MODEL)
  const names = catalog.storedModels.map(({ name }) => name)
  if (isInSync(await store.scanById(db.reader, table, ALL_RECORDS), names)) return
  await db.transaction(async (tx) => {
    for (const lock of db.dialect.lockSchema) await tx.run(lock)
    const stored = await store.scanById(tx, table, ALL_RECORDS)
    const obsolete: WireRecord[] = []
    for (const record of stored) {
      const isServed = names.includes(String(record['fullName']))
      if (!isServed && !(await isReferenced(app, tx, record.id))) obsolete.push(record)
    }
    const storedNames = new Set(stored.map(({ fullName }) => fullName))
    const rows = names
      .filter((name) => !storedNames.has(name))
      .map((name) => buildMetaModelRow(name, app.clock.now()))
    await deleteRows(tx, table, obsolete)
    const ids = await insertRows(tx, table, rows)
    const common = { model: META_MODEL.name, userId: null, atMs: app.clock.now() }
    await appendChanges(tx, app.tables, [
      ...obsolete.map((record) => ({ ...common, ...buildDeletion(record) })),
      ...ids.map((id, index) => ({ ...common, ...buildCreation(id, rows[index] ?? {}) })),
    ])
  }, LONG_TRANSACTION)
}

/** A meta record that other records refer to is kept after its model is removed. */
async function isReferenced(
  { catalog, db, undeclaredReferrers }: MetaModelApp,
  tx: Transaction,
  id: number,
): Promise<boolean> {
  const referrers = [
    ...catalog.referencesTo(META_MODEL).map(toReferrer),
    ...catalog.linksTo(META_MODEL).map((list) => ({ ...toReferrer(list), isLink: true })),
    ...undeclaredReferrers.filter(({ target }) => target === META_MODEL.name),
  ]
  for (const referrer of referrers)
    if ((await findReferringRecords(tx, db.dialect, referrer, [id])).total > 0) return true
  return false
}

function isInSync(stored: readonly WireRecord[], served: readonly string[]): boolean {
  const names = new Set(stored.map(({ fullName }) => fullName))
  return names.size === served.length && served.every((name) => names.has(name))
}

function buildMetaModelRow(fullName: string, nowMs: number): Values {
  const [, packageName = '', name = fullName] = /^(.*)\.([^.]*)$/.exec(fullName) ?? []
  return { name, fullName, packageName, createdOn: new Date(nowMs).toISOString() }
}

function buildDeletion(record: WireRecord): Pick<NewChange, 'id' | 'version' | 'action' | 'changes'> {
  const changes = diffValues(META_MODEL, toValues(META_MODEL, record), {})
  return { id: record.id, version: record.version + 1, action: 'delete', changes }
}

function buildCreation(id: number, row: Values): Pick<NewChange, 'id' | 'version' | 'action' | 'changes'> {
  return { id, version: 0, action: 'create', changes: diffValues(META_MODEL, {}, row) }
}
