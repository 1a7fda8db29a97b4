// Checks the stored data while the service runs: pages and indexes, records against the Log, files against their content.
import { pluralize } from '../../model/values/plural.js'
import type { Database } from '../../store/engine/database.js'
import {
  checkFileReferences,
  checkFileRows,
  checkFileContent,
  listFileColumns,
} from '../../store/verify/file-check.js'
import { checkRecordsAgainstLog } from '../../store/verify/log-check.js'
import { parseSnapshots, readSnapshotTexts } from '../../store/schema/stored-snapshots.js'
import type { App } from '../context/app.js'

type VerificationApp = Pick<App, 'db' | 'tables'> & { readonly catalog: Pick<App['catalog'], 'storedModels'> }

const MAX_LISTED_FINDINGS = 100

/** Counts all findings and keeps the first ones as text. */
export class Findings {
  readonly #messages: string[] = []
  #count = 0

  add(...errors: readonly string[]): void {
    this.#count += errors.length
    this.#messages.push(...errors.slice(0, MAX_LISTED_FINDINGS - this.#messages.length))
  }

  get count(): number {
    return this.#count
  }

  get lines(): readonly string[] {
    const more = this.#count - this.#messages.length
    return more > 0 ? [...this.#messages, `and ${more} more`] : this.#messages
  }
}

/** No check finds these, because nothing else in the database contradicts them. */
export const VERIFICATION_LIMITS =
  'wrong times and authors of records and changes, earlier values in the change log, secrets, values that a start has filled in, ' +
  'rows of internal tables such as sessions; a record and its changes that were changed alike'

/** Adds its findings, and returns a sentence that says what was checked. */
export type StorageCheck<A> = (app: A, findings: Findings) => Promise<string>

export interface StorageCheckResult {
  readonly name: string
  readonly summary: string
  readonly findings: Findings
}

/** Checks by name, in the order of execution. */
export const STORAGE_CHECKS: Readonly<Record<string, StorageCheck<VerificationApp>>> = {
  Log: checkLog,
  files: ({ db }, findings) => checkFiles(db, findings),
}

/** Reports an error as a finding: a damaged page makes a check fail. */
export async function runStorageCheck<A>(
  name: string,
  check: StorageCheck<A>,
  app: A,
): Promise<StorageCheckResult> {
  const findings = new Findings()
  try {
    return { name, findings, summary: await check(app, findings) }
  } catch (error) {
    findings.add(`the check stopped with an error: ${error instanceof Error ? error.message : String(error)}`)
    return { name, findings, summary: 'the check is incomplete' }
  }
}

/** Runs the checks of the database engine. They need no models. */
export async function checkIntegrity(
  { queryPool, dialect }: Pick<Database, 'queryPool' | 'dialect'>,
  findings: Findings,
): Promise<string> {
  for (const { sql } of dialect.integrityChecks)
    findings.add(...(await queryPool.all(sql)).map((row) => String(row['fault']).replaceAll('\n', '; ')))
  const names = dialect.integrityChecks.map(({ name }) => name).join(' and ')
  return names === '' ? 'this database engine has no integrity check to run' : `${names} were run`
}

/** Each batch reads from its own snapshot, which contains a record together with its Changes. */
export async function checkLog(
  { db, catalog, tables }: VerificationApp,
  findings: Findings,
): Promise<string> {
  let [records, changes] = [0, 0]
  for (const model of catalog.storedModels) {
    const table = tables.of(model)
    const former = tables.formerFields.get(model.name) ?? []
    for (let after: number | undefined = 0; after !== undefined;) {
      const from: number = after
      const portion = await db.queryPool.snapshot((snapshot) =>
        checkRecordsAgainstLog(snapshot, table, former, from),
      )
      findings.add(...portion.errors)
      records += portion.records
      changes += portion.changes
      after = portion.lastId
    }
  }
  return `${pluralize(records, 'record')} of ${pluralize(catalog.storedModels.length, 'model')} and ${pluralize(changes, 'Change')} were compared`
}

export async function checkFiles(db: Database, findings: Findings): Promise<string> {
  // Stored models that are not declared keep their files, so they are included.
  const columns = listFileColumns(parseSnapshots(await readSnapshotTexts(db.reader)))
  let files = 0
  for (let after: number | undefined = 0; after !== undefined;) {
    const from: number = after
    const portion = await db.queryPool.snapshot((snapshot) => checkFileRows(snapshot, db, columns, from))
    findings.add(...portion.errors)
    for (const file of portion.files) {
      const error = await checkFileContent(db, file)
      if (error !== undefined) findings.add(error)
    }
    files += portion.files.length
    after = portion.lastId
  }
  for (const column of columns) {
    for (let after: number | undefined = 0; after !== undefined;) {
      const { errors, lastId } = await checkFileReferences(db.queryPool, column, after)
      findings.add(...errors)
      after = lastId
    }
  }
  for await (const stray of db.blobs.findOrphans()) findings.add(`content without a record: ${stray}`)
  return `${pluralize(files, 'file')} and their content were read`
}
