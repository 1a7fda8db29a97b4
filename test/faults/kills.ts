// `kill -9` of a server under load, again and again; after each restart every acknowledged write must be there.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, preparedLocation, USERNAME, type Engine } from '../targets.js'
import type * as mutants from '../mutants/records.js'
import { exchange } from './load-client.js'
import { Journal } from './journal.js'
import { startServerProcess } from './server-process.js'

const WORKERS = 12
const WRITES = [20, 200] as const
const MAX_LOAD_MS = 2_000

export interface Kills {
  /** The number of acknowledged writes in total. */
  readonly acknowledged: number
  readonly violations: readonly string[]
}

/** Kills the server this many times, or until a write is lost. */
export async function killRepeatedly(
  engine: Engine,
  kills: number,
  mutant?: keyof typeof mutants,
): Promise<Kills> {
  const location = await preparedLocation(engine)
  const journal = new Journal()
  const violations: string[] = []
  let server = await startServerProcess(location.url, mutant)
  try {
    const { cookie } = await HttpClient.login(server.url, USERNAME, PASSWORD)
    for (let kill = 1; kill <= kills && !violations.some(isLostWrite); kill++) {
      let isOver = false
      const session = { url: server.url, cookie }
      const workers = Array.from({ length: WORKERS }, () => journal.keepWriting(session, () => isOver))
      await untilAcknowledged(journal, journal.acknowledged + randomInt(...WRITES))
      isOver = true
      await server.kill()
      await Promise.all(workers)
      server = await startServerProcess(location.url, mutant)
      // A session from before the crash stays valid.
      const { status } = await exchange({ url: server.url, cookie }, 'GET', '/ws/rest/crm.Contact?limit=1')
      if (status !== 200) violations.push(`kill ${kill}: a find is answered with ${status}`)
      const found = await checkStored(location.url, engine, journal)
      violations.push(...found.map((violation) => `kill ${kill}: ${violation}`))
    }
  } finally {
    await server.kill()
    location.remove()
  }
  return { acknowledged: journal.acknowledged, violations }
}

/** A mutant may also answer an update with a conflict, because the update before it is not committed yet. */
function isLostWrite(violation: string): boolean {
  return violation.includes('was acknowledged as')
}

/** Waits for writes, not for a time, so that the kill hits at any point of the work on slow and fast machines. */
async function untilAcknowledged(journal: Journal, count: number): Promise<void> {
  const deadline = Date.now() + MAX_LOAD_MS
  while (journal.acknowledged < count && Date.now() < deadline) await sleep(1)
}

async function checkStored(url: string, engine: Engine, journal: Journal): Promise<string[]> {
  const db = await openDatabase(url, { poolSize: 1, statementTimeoutMs: 10_000 })
  try {
    if (engine === 'postgres') {
      await untilNobodyWrites(db.reader)
      return await journal.check(db.reader)
    }
    const damage = await db.reader.all('pragma integrity_check')
    const faults = damage.map((row) => String(row['integrity_check'])).filter((line) => line !== 'ok')
    return [...faults, ...(await journal.check(db.reader))]
  } finally {
    await db.close()
  }
}

/** Waits for backends that still work on the last statements of the dead process. */
export async function untilNobodyWrites(db: Queryable): Promise<void> {
  for (;;) {
    const others = await db.all(
      `select 1 as one from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`,
    )
    if (others.length === 0) return
    await sleep(20)
  }
}
