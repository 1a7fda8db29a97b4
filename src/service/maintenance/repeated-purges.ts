// Repeats purges in a restored database, and keeps the list of purges beside the backups.
import { readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { requireClaim, type RestoreClaim } from '../../store/backup/restore-tables.js'
import { LONG_TRANSACTION } from '../../store/engine/database.js'
import { isFileMissing } from '../../store/engine/file-errors.js'
import { PRIVATE_FILE_MODE, syncFolder } from '../../store/engine/private-files.js'
import { insertPurge, listPurges, toPurgeKey, type Purge } from '../../store/log/purges.js'
import { readLastSeq } from '../../store/log/feed.js'
import { repeatPurge } from '../../store/schema/repeated-purge.js'
import { readFormerFields } from '../../store/schema/former-fields.js'
import { parseSnapshots, readSnapshotTexts } from '../../store/schema/stored-snapshots.js'
import { appendEvent } from '../auth/events.js'
import type { App } from '../context/app.js'

/** The journal of purges in a folder of backups: one JSON object a line, without values. */
export const PURGE_JOURNAL = 'purges.ndjson'

export interface RepeatedPurges {
  readonly purges: number
  /** Records that were deleted before their purge, and are in the backup. They are empty now. */
  readonly emptied: readonly Purge[]
}

/** Repeats the purges that the database does not have. Must run before `raiseRestoredNumbers`. */
export async function repeatPurges(
  app: Pick<App, 'catalog' | 'db' | 'tables' | 'clock'>,
  claim: RestoreClaim,
  known: readonly Purge[],
): Promise<RepeatedPurges> {
  const { db } = app
  const snapshots = parseSnapshots(await readSnapshotTexts(db.reader))
  const former = await readFormerFields(db.reader)
  const lastSeq = await readLastSeq(db.reader)
  const done = new Set((await listPurges(db.reader)).map(toPurgeKey))
  const missing = known.filter((purge) => !done.has(toPurgeKey(purge)) && done.add(toPurgeKey(purge)))
  const emptied: Purge[] = []
  for (const purge of missing) {
    const formerSeq = Math.max(0, ...(former.get(purge.model) ?? []).map(({ seq }) => seq))
    const snapshot = snapshots.get(purge.model)
    const fields = await db.transaction(async (tx) => {
      await requireClaim(tx, claim)
      const count = await repeatPurge(db, tx, purge, { snapshot, lastSeq, formerSeq })
      await insertPurge(tx, purge)
      await appendEvent(app, tx, { kind: 'history-purged', note: `${purge.model} ${purge.id}` })
      return count
    }, LONG_TRANSACTION)
    if (fields > 0 && purge.isDeleted) emptied.push(purge)
  }
  await db.blobs.collect()
  return { purges: missing.length, emptied }
}

/** Adds purges to the journal of a folder. Keeps its other purges, which may be those of a lost database. */
export async function extendPurgeJournal(folder: string, purges: readonly Purge[]): Promise<void> {
  const file = path.join(folder, PURGE_JOURNAL)
  const all = new Map([...(await readPurgeJournal(file)), ...purges].map((each) => [toPurgeKey(each), each]))
  if (all.size === 0) return
  const lines = [...all.values()].map((purge) => `${JSON.stringify(purge)}\n`)
  await writeFile(`${file}.part`, lines.join(''), { mode: PRIVATE_FILE_MODE, flush: true })
  await rename(`${file}.part`, file)
  syncFolder(folder)
}

/** Returns no purges if the file does not exist. */
export async function readPurgeJournal(file: string): Promise<Purge[]> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (isFileMissing(error)) return []
    throw error
  }
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line, index) => parsePurge(line, `${file}, line ${index + 1}`))
}

function parsePurge(line: string, where: string): Purge {
  try {
    const { database, model, id, seq, atMs, isDeleted, fields } = JSON.parse(line) as Partial<
      Record<keyof Purge, unknown>
    >
    const isPurge =
      typeof model === 'string' &&
      (database === undefined || Number.isSafeInteger(database)) &&
      [id, seq, atMs].every(Number.isSafeInteger) &&
      typeof isDeleted === 'boolean'
    if (isPurge && typeof fields === 'object' && fields !== null)
      return {
        ...(database === undefined ? {} : { database: Number(database) }),
        model,
        id: Number(id),
        seq: Number(seq),
        atMs: Number(atMs),
        isDeleted,
        fields: fields as Purge['fields'],
      }
  } catch {
    // The message below names the line.
  }
  throw new ConfigError('The list of purges cannot be read', [
    `${where} is not a purge: use the ${PURGE_JOURNAL} that verso has written; nothing was changed`,
  ])
}
