// Compares a restored database with what its backup says, and runs the checks of `verso verify`.
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import { pluralize } from '../../model/values/plural.js'
import { RESTORE_FAILED } from '../../store/backup/restore-tables.js'
import { readTablePages } from '../../store/backup/table-pages.js'
import type { Database, Queryable } from '../../store/engine/database.js'
import { findUnchangedModels } from '../../store/schema/catalog-snapshots.js'
import { readFormerFields } from '../../store/schema/former-fields.js'
import { readSnapshotTexts } from '../../store/schema/stored-snapshots.js'
import { Tables } from '../../store/sql/table.js'
import {
  checkFiles,
  checkIntegrity,
  checkLog,
  Findings,
  runStorageCheck,
} from '../maintenance/verification.js'
import { createRowHash, type RestoreFacts, type TableSummary } from './backup.js'

/** Returns a sentence for each check. Throws if one of them finds an error. */
export async function verifyRestore(
  db: Database,
  facts: RestoreFacts,
  catalog: Catalog | undefined,
): Promise<string[]> {
  const texts = await readSnapshotTexts(db.reader)
  const unchanged = catalog ? findUnchangedModels(catalog, texts) : undefined
  const results = [
    await runStorageCheck('content', (_, findings) => compareTables(db, facts, findings), undefined),
    await runStorageCheck('integrity', checkIntegrity, db),
    await runStorageCheck('files', checkFiles, db),
  ]
  if (catalog && unchanged) {
    const tables = new Tables(db.dialect, catalog, await readFormerFields(db.reader))
    const storedModels = catalog.storedModels.filter(({ name }) => unchanged.has(name))
    results.push(await runStorageCheck('Log', checkLog, { db, catalog: { storedModels }, tables }))
  }
  const errors = results.flatMap(({ name, findings }) => findings.lines.map((line) => `${name}: ${line}`))
  if (errors.length > 0)
    throw new ConfigError(RESTORE_FAILED, [
      'the restored data differs from the backup, or the backup is of a damaged database',
      ...errors,
    ])
  return results.map(({ summary }) => summary)
}

/** Reads every restored row again, and compares the rows with the digests in the backup. */
async function compareTables(
  db: Database,
  { header, end }: RestoreFacts,
  findings: Findings,
): Promise<string> {
  const expected = new Map(end.tables.map((table) => [table.name, table]))
  await db.queryPool.longSnapshot(async (snapshot) => {
    for (const table of header.tables) {
      const found = await summarizeTable(snapshot, db, table)
      const { rows, sha256 } = expected.get(table.name) ?? { rows: 0, sha256: '' }
      if (found.rows !== rows) findings.add(`${table.name} has ${found.rows} rows instead of ${rows}`)
      else if (found.sha256 !== sha256) findings.add(`${table.name} has other values than the backup`)
    }
  })
  const rows = end.tables.reduce((sum, table) => sum + table.rows, 0)
  return `${pluralize(rows, 'row')} of ${pluralize(end.tables.length, 'table')} were read again and compared with the backup`
}

async function summarizeTable(
  snapshot: Queryable,
  { dialect }: Database,
  table: RestoreFacts['header']['tables'][number],
): Promise<Pick<TableSummary, 'rows' | 'sha256'>> {
  const hash = createRowHash()
  let rows = 0
  for await (const page of readTablePages(snapshot, dialect, table)) {
    hash.add(page.text)
    rows += page.rows
  }
  return { rows, sha256: hash.digest() }
}
