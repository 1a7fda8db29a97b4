// PostgreSQL only: after a deadlock the service runs its transaction again. The other transaction must get its lock first, although a busy
// machine lets it wait for a processor: PostgreSQL gives a free lock to the first transaction that asks.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { retryingAtOnce } from '../mutants/records.js'
import { createDatabase, startPostgres, type Postgres } from '../postgres.js'

/** How long the other transaction waits for a processor. */
const DELAYED_MS = 40

let postgres: Postgres

beforeAll(async () => {
  // A server of this machine, because the test stops one of its processes.
  postgres = await startPostgres({ extraArgs: ['-c', 'deadlock_timeout=100ms'] })
})
afterAll(() => postgres.stop())

test('the retry after a deadlock lets the other transaction have its lock', async () => {
  expect(await deadlock()).toBe('the other transaction was first')
})

test('the mutant that retries at once is caught', async () => {
  const outcomes: string[] = []
  // On a busy machine the mutant itself may wait for a processor for so long that the other transaction is first.
  for (let attempt = 0; attempt < 10 && !outcomes.includes('busy'); attempt++)
    outcomes.push(await deadlock(retryingAtOnce))
  expect(outcomes).toContain('busy')
})

/** Two transactions lock two rows in opposite order. The other one is stopped while it waits, so PostgreSQL ends the one of the service. */
async function deadlock(mutant = (db: Database) => db): Promise<string> {
  const url = await createDatabase(postgres.url)
  const db = mutant(await openDatabase(url, { poolSize: 3, statementTimeoutMs: 10_000 }))
  const other = await OtherTransaction.open(url)
  try {
    return await db.transaction(async (tx) => {
      if ((await tx.all('select id from rows where id = 2 for key share')).length === 0)
        return 'the other transaction was first'
      await other.askForSecondRow()
      try {
        await tx.all('select id from rows where id = 1 for key share')
        return 'no deadlock'
      } finally {
        other.continueAfter(DELAYED_MS)
      }
    })
  } catch (error) {
    return String((error as { readonly kind?: unknown }).kind)
  } finally {
    await db.close()
    await other.close()
  }
}

/** Has locked the first row, deletes the second one and commits. */
class OtherTransaction {
  #ended: Promise<unknown> | undefined
  #continued = Promise.resolve()

  private constructor(
    private readonly client: pg.Client,
    private readonly observer: pg.Client,
    private readonly pid: number,
  ) {}

  static async open(url: string): Promise<OtherTransaction> {
    const [client, observer] = [await connect(url), await connect(url)]
    await client.query('create table rows (id int primary key); insert into rows values (1), (2)')
    await client.query('begin; select id from rows where id = 1 for update')
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    return new OtherTransaction(client, observer, rows[0]?.pid ?? 0)
  }

  /** Resolves when the process of the server waits for the row and is stopped. */
  async askForSecondRow(): Promise<void> {
    await this.#continued
    this.#ended ??= this.client.query('delete from rows where id = 2; commit')
    const sql = 'select 1 where cardinality(pg_blocking_pids($1)) > 0'
    while ((await this.observer.query(sql, [this.pid])).rowCount === 0) await sleep(1)
    process.kill(this.pid, 'SIGSTOP')
  }

  continueAfter(ms: number): void {
    this.#continued = sleep(ms).then(() => void process.kill(this.pid, 'SIGCONT'))
  }

  async close(): Promise<void> {
    await this.#continued
    await this.#ended
    await Promise.all([this.client.end(), this.observer.end()])
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}
