// PostgreSQL only: concurrent writes share a transaction (group commit) without affecting each other and without a lost write.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Database, Transaction } from '../../src/store/engine/database.js'
import { changedReader, changedTransaction } from '../queryables.js'
import { openDatabase } from '../../src/store/open.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { changesSince } from '../log.js'
import {
  identityIn,
  preparedLocation,
  catchError,
  startService,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import {
  answersBeforeSharedCommit,
  inTransactions,
  sharingEverything,
  withoutIsolation,
  withoutSharedGuard,
} from '../mutants/group-commit.js'

const CONTACT = 'crm.Contact'
const MANY = 20
const OPTIONS = { poolSize: 10, statementTimeoutMs: 10_000 }
/** Texts that an array literal could confuse with its own syntax. */
const TEXTS = ['', 'NULL', 'null', '{a,"b"}', 'a\\b"c', "'", '\n\t', ' ', 'é😀', ',', '}', '\\']

let location: DatabaseLocation
let observer: Database
let service: Service
let records: Records

beforeEach(async () => {
  location = await preparedLocation('postgres')
  observer = await openDatabase(location.url, OPTIONS)
})
afterEach(async () => {
  await service.close()
  await observer.close()
  location.remove()
})

async function start(mutant: (db: Database) => Database = (db) => db): Promise<void> {
  service = await startService('postgres', {
    location,
    database: mutant(await openDatabase(location.url, OPTIONS)),
  })
  // Loads the permissions first, so that all writes of one tick join one group commit.
  const by = await service.app.authorizer.resolvePrincipal(await identityIn(service))
  records = recordsForPrincipal(service.app, by)
}

async function make(count: number): Promise<WireRecord[]> {
  const all: WireRecord[] = []
  for (let index = 0; index < count; index++)
    all.push((await records.create(CONTACT, { firstName: `C${index}` })).data)
  return all
}

async function lastSeq(): Promise<number> {
  return (await changesSince(observer.reader, 0, 10_000)).at(-1)?.seq ?? 0
}

async function transactionsOf(model: string, ids: readonly number[]): Promise<number> {
  const [row] = await observer.reader.all(
    `select count(distinct xmin::text) as "count" from "${model}" where "id" in (${ids.join()})`,
  )
  return Number(row?.['count'])
}

const update = ({ id, version }: WireRecord, values: object) =>
  records.update(CONTACT, id, { version, ...values })

test('concurrent writes share one transaction, with one change for each record', async () => {
  await start()
  const before = await make(5)
  const since = await lastSeq()
  const written = await Promise.all([
    ...Array.from({ length: MANY }, (_, index) => records.create(CONTACT, { firstName: `new ${index}` })),
    ...before.map((contact, index) => update(contact, { firstName: `other ${index}` })),
  ])
  const ids = written.map(({ data }) => data.id)
  expect(await transactionsOf(CONTACT, ids)).toBe(1)
  const changes = await changesSince(observer.reader, since, 100)
  expect(changes.map(({ id }) => id).sort((a, b) => a - b)).toEqual([...ids].sort((a, b) => a - b))
  for (const { data } of written) {
    expect(await records.read(CONTACT, data.id)).toEqual(data)
    const change = changes.find(({ id }) => id === data.id)
    expect(change).toMatchObject({
      version: data.version,
      changes: { firstName: { after: data['firstName'] } },
    })
  }
})

test('a record written in a group commit equals a record written alone', async () => {
  await start()
  const everything = (label: string) => ({
    ...{ label, note: label, whole: -3, big: 2 ** 53 - 1, amount: '-12345678901234567890.0000000001' },
    ...{ price: '0.10', active: true, day: '2024-02-29', at: '23:59:59', moment: '2024-01-02T03:04:05.678Z' },
    ...{ token: '6a2f41a3-c54c-4ce8-99d1-0b1c2d3e4f50', state: 'sent', extra: { b: [label, null], a: 1.5 } },
  })
  const values = [...TEXTS.map(everything), { label: null }, {}]
  const together = await Promise.all(values.map((each) => records.create('test.Everything', each)))
  const ids = together.map(({ data }) => data.id)
  expect(await transactionsOf('test.Everything', ids)).toBe(1)
  for (const [index, each] of values.entries()) {
    const alone = await records.create('test.Everything', each)
    const stored = await records.read('test.Everything', ids[index] ?? 0)
    const { id, createdOn } = stored
    expect({ ...alone.data, id, createdOn }).toEqual(stored)
    expect(together[index]?.data).toEqual(stored)
  }
  const changed = await Promise.all(
    together.map(({ data: { id, version } }, index) =>
      records.update('test.Everything', id, { version, ...everything(TEXTS.at(-index - 1) ?? 'last') }),
    ),
  )
  expect(await transactionsOf('test.Everything', ids)).toBe(1)
  for (const { data } of changed) expect(await records.read('test.Everything', data.id)).toEqual(data)
})

/** Returns true if, of many concurrent creates, only the duplicate is rejected and everything else is stored. */
async function isolated(): Promise<boolean> {
  await records.create('test.Limited', { code: 'aa' })
  const since = await lastSeq()
  const codes = Array.from({ length: MANY }, (_, index) =>
    index === 7 ? 'aa' : index < 9 ? `b${index}` : `c${index}`,
  )
  const outcomes = await Promise.allSettled(codes.map((code) => records.create('test.Limited', { code })))
  const rows = await observer.reader.all('select "code" from "test.Limited" order by "code"')
  const changes = await changesSince(observer.reader, since, 100)
  const rejected = outcomes
    .filter((each) => each.status === 'rejected')
    .map(({ reason }) => reason as unknown)
  return (
    rejected.length === 1 &&
    rejected.every((reason) => reason instanceof VersoError && reason.kind === 'not-unique') &&
    rows.length === MANY &&
    changes.length === MANY - 1
  )
}

test('a unique violation in a group commit rejects one write, and all others are stored once', async () => {
  await start()
  expect(await isolated()).toBe(true)
})

test('the mutant group commit in which one failure rolls back the others is caught', async () => {
  await start(withoutIsolation)
  expect(await isolated()).toBe(false)
})

test('of two concurrent creates with the same unique value one succeeds', async () => {
  await start()
  const codes = ['aa', 'bb', 'aa', 'cc']
  const outcomes = await Promise.allSettled(codes.map((code) => records.create('test.Limited', { code })))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
})

test('a conflict in a group commit has the same details as a conflict of a write alone', async () => {
  await start()
  const contacts = await make(MANY)
  const [first, ...others] = contacts as [WireRecord, ...WireRecord[]]
  const { data } = await update(first, { firstName: 'theirs' })
  const error = catchError(update(first, { firstName: 'ours' }))
  const written = await Promise.all([...others.map((contact) => update(contact, { lastName: 'x' }))])
  const alone = await catchError(update(first, { firstName: 'ours' }))
  expect((await error).kind).toBe('conflict')
  expect((await error).details.data).toEqual(alone.details.data)
  expect((await error).details.data).toMatchObject({ current: data.version, baseKnown: true })
  expect(written.map(({ data: { version } }) => version)).toEqual(others.map(() => 1))
})

test('of concurrent updates of one record in a group commit one succeeds, the others are conflicts', async () => {
  await start()
  const [contact] = (await make(1)) as [WireRecord]
  const others = await make(3)
  const outcomes = await Promise.allSettled([
    ...others.map((other) => update(other, { lastName: 'x' })),
    ...Array.from({ length: 8 }, (_, index) => update(contact, { firstName: `writer ${index}` })),
  ])
  const rejected = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as VersoError] : []))
  expect(rejected.map(({ kind }) => kind)).toEqual(Array.from({ length: 7 }, () => 'conflict'))
  const now = await records.read(CONTACT, contact.id)
  for (const { details } of rejected)
    expect(details.data).toMatchObject({
      ...{ current: 1, baseKnown: true },
      fields: { firstName: { base: 'C0', theirs: now['firstName'] } },
    })
})

/** True if other members run in the transaction. */
function isShared(tx: Transaction): boolean {
  try {
    tx.requireExclusive()
    return false
  } catch {
    return true
  }
}

/** Another process changes the record after it was read and before it is written. */
function interrupting(act: () => Promise<unknown>): (db: Database) => Database {
  let isOver = false
  return (db) =>
    inTransactions(db, (tx) =>
      changedTransaction(tx, {
        all: async (sql, params) => {
          const rows = await tx.all(sql, params)
          if (!sql.includes(`from "${CONTACT}" as t where t."id" in`) || isOver) return rows
          isOver = true
          await act()
          return rows
        },
      }),
    )
}

async function lostEdits(mutant: (db: Database) => Database): Promise<number> {
  let contacts: WireRecord[] = []
  const act = () =>
    observer.transaction((tx) =>
      tx.run(`update "${CONTACT}" set "firstName" = 'theirs', "version" = "version" + 1 where "id" = ?`, [
        contacts[2]?.id ?? 0,
      ]),
    )
  await start((db) => interrupting(act)(mutant(db)))
  contacts = await make(6)
  const outcomes = await Promise.allSettled(contacts.map((each) => update(each, { firstName: 'ours' })))
  const names = await Promise.all(
    contacts.map(async ({ id }) => (await records.read(CONTACT, id))['firstName']),
  )
  expect(outcomes.filter((_, index) => index !== 2).map(({ status }) => status)).not.toContain('rejected')
  return names.filter((name, index) => index === 2 && name !== 'theirs').length
}

test('an update overtaken between its read and its write is a conflict, the others of its group succeed', async () => {
  expect(await lostEdits((db) => db)).toBe(0)
})

test('the mutant group update without a version guard is caught', async () => {
  expect(await lostEdits(withoutSharedGuard)).toBe(1)
})

test('a locked record delays only its own update, not the others of the group commit', async () => {
  await start()
  const contacts = await make(6)
  const [held] = contacts as [WireRecord]
  const order: string[] = []
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  let isHeld = (): void => undefined
  const holding = new Promise<void>((resolve) => (isHeld = resolve))
  const holder = observer.transaction(async (tx) => {
    await tx.all(`select 1 from "${CONTACT}" where "id" = ? for update`, [held.id])
    isHeld()
    await released
    order.push('released')
  })
  await holding
  const all = contacts.map((contact, index) =>
    update(contact, { lastName: 'x' }).then(() => order.push(String(index))),
  )
  await Promise.all(all.slice(1))
  release()
  await Promise.all([holder, ...all])
  expect(order.slice(-2)).toEqual(['released', '0'])
})

describe('a lost connection', () => {
  test('a connection lost during a group commit: every write is stored exactly once or rejected', async () => {
    let isKilled = false
    await start((db) =>
      inTransactions(db, (tx) =>
        changedTransaction(tx, {
          all: async (sql, params) => {
            if (sql.includes('verso_schema') && isShared(tx) && !isKilled) {
              isKilled = true
              const [row] = await tx.all('select pg_backend_pid() as "pid"')
              await observer.queryPool.all('select pg_terminate_backend(?)', [Number(row?.['pid'])])
            }
            return tx.all(sql, params)
          },
        }),
      ),
    )
    const since = await lastSeq()
    const written = await Promise.all(
      Array.from({ length: MANY }, (_, index) => records.create(CONTACT, { firstName: `new ${index}` })),
    )
    expect(isKilled).toBe(true)
    const rows = await observer.reader.all(`select "id" from "${CONTACT}" order by "id"`)
    expect(rows.map(({ id }) => id)).toEqual(written.map(({ data }) => data.id).sort((a, b) => a - b))
    expect(await changesSince(observer.reader, since, 100)).toHaveLength(MANY)
  })

  test('a connection lost at COMMIT: no write is acknowledged, and none is retried', async () => {
    await start()
    await observer.transaction(async (tx) => {
      await tx.run(
        `create function die() returns trigger language plpgsql as 'begin perform pg_terminate_backend(pg_backend_pid()); return null; end'`,
      )
      await tx.run(
        `create constraint trigger die after insert on verso_log deferrable initially deferred for each row execute function die()`,
      )
    })
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, () => catchError(records.create(CONTACT, { firstName: 'lost' }))),
    )
    for (const { kind, message } of outcomes)
      expect([kind, message]).toEqual(['busy', expect.stringContaining('read before you try again')])
    await observer.transaction((tx) => tx.run('drop trigger die on verso_log'))
    expect(await observer.reader.all(`select "id" from "${CONTACT}"`)).toEqual([])
  })
})

/** The number of responses whose record other connections do not see yet. */
async function unseen(): Promise<number> {
  // A slow COMMIT, so that a response before it is always seen too early.
  await observer.transaction(async (tx) => {
    await tx.run(
      `create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(0.02); return null; end'`,
    )
    await tx.run(
      `create constraint trigger wait after insert on verso_log deferrable initially deferred for each row execute function wait()`,
    )
  })
  let count = 0
  const create = async () => {
    const { data } = await records.create(CONTACT, { firstName: 'new' })
    const rows = await observer.reader.all(`select 1 from "${CONTACT}" where "id" = ?`, [data.id])
    if (rows.length === 0) count += 1
  }
  await Promise.all(Array.from({ length: MANY }, create))
  return count
}

test('a write is answered after the COMMIT of its group', async () => {
  await start()
  expect(await unseen()).toBe(0)
})

test('the mutant group commit that answers before its COMMIT is caught', async () => {
  await start(answersBeforeSharedCommit)
  expect(await unseen()).toBeGreaterThan(0)
})

/** The number of people with a dangling company. */
async function dangling(): Promise<number> {
  for (let round = 0; round < 10; round++) {
    const { data } = await records.create('rel.Company', { name: 'a company' })
    const { id, version } = data
    await Promise.allSettled([
      records.remove('rel.Company', id, { version }),
      records.create('rel.Person', { name: 'new', company: { id } }),
      records.create('rel.Person', { name: 'other' }),
    ])
  }
  const rows = await observer.reader.all(
    'select 1 from "rel.Person" as p where p."company" is not null and not exists (select 1 from "rel.Company" as c where c."id" = p."company")',
  )
  return rows.length
}

test('a new reference never dangles when its target is removed concurrently', async () => {
  await start()
  expect(await dangling()).toBe(0)
})

test('the mutant that lets references and removals share a transaction is caught', async () => {
  await start(sharingEverything)
  expect(await dangling()).toBeGreaterThan(0)
})

test('a changed reference gets its own transaction, an unchanged one joins the group commit', async () => {
  await start()
  const company = { id: (await records.create('rel.Company', { name: 'a company' })).data.id }
  const people: WireRecord[] = []
  for (const name of ['a', 'b', 'c', 'd'])
    people.push((await records.create('rel.Person', { name, company: name === 'd' ? null : company })).data)
  await Promise.all(
    people.map(({ id, version }) => records.update('rel.Person', id, { version, rate: '1.00', company })),
  )
  const ids = people.map(({ id }) => id)
  expect(await transactionsOf('rel.Person', ids.slice(0, 3))).toBe(1)
  expect(await transactionsOf('rel.Person', ids)).toBe(2)
  for (const id of ids) expect(await records.read('rel.Person', id)).toMatchObject({ version: 1, company })
})

test('a single write gets its own transaction, and a single read the statement for one record', async () => {
  const shared: boolean[] = []
  const statements: string[] = []
  await start((db) => {
    const counted = inTransactions(db, (tx) => {
      shared.push(isShared(tx))
      return tx
    })
    const { reader } = db
    return {
      ...counted,
      reader: changedReader(reader, (sql, params) => {
        statements.push(sql)
        return reader.all(sql, params)
      }),
    }
  })
  const [contact] = (await make(1)) as [WireRecord]
  await update(contact, { lastName: 'x' })
  statements.length = 0
  await records.read(CONTACT, contact.id)
  expect(shared).not.toContain(true)
  expect(statements).toHaveLength(1)
  expect(statements[0]).toContain('where t."id" = ?')
  statements.length = 0
  const read = await Promise.all(Array.from({ length: MANY }, () => records.read(CONTACT, contact.id)))
  expect(statements).toHaveLength(1)
  expect(read).toEqual(read.map(() => read[0]))
})
