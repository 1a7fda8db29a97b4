// The cost of a page by the query plans of the engines: after a cursor it is the same anywhere in the table.
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineModel } from '../../src/index.js'
import { parseFindQuery } from '../../src/model/query/search.js'
import { rebuildCounters } from '../../src/service/maintenance/counters.js'
import type { Queryable, SqlValue } from '../../src/store/engine/database.js'
import { findPage } from '../../src/store/find/pages.js'
import { readDeletePage } from '../../src/store/log/deleted-records.js'
import { LOG_TABLE } from '../../src/store/sql/log-insert.js'
import { COUNTER_LEVELS } from '../../src/store/counters/counted-fields.js'
import { onEveryEngine, startService, type Service } from '../targets.js'
import { unshared } from '../queryables.js'

const MODEL = 'plan.Row'
const COUNT = 20_000
const LIMIT = 20
const definition = defineModel({
  name: MODEL,
  fields: {
    many: { type: 'integer' },
    few: { type: 'string' },
    note: { type: 'text' },
  },
  indexes: [['many'], ['few']],
})

interface Asked {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

onEveryEngine((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine, { models: [{ file: 'plans.ts', definition }] })
    await service.app.db.transaction(async (tx) => {
      const numbers = `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${COUNT})`
      await tx.run(
        `insert into "${MODEL}" ("version", "many", "few", "note")
          ${numbers} select 0, case when n % 50 = 0 then null else (n * 7919) % 100003 end,
            case n % 4 when 0 then null when 1 then 'a' else 'b' end, 'a note of some length ' || n from numbers`,
      )
    })
    await settle(service)
  })
  afterAll(async () => {
    await service.server.close()
    await service.app.close()
    service.location.remove()
  })

  /** The page, with its statement. */
  const ask = async (query: object) => {
    const { app } = service
    const asked: Asked[] = []
    const db: Queryable = unshared({
      all: (sql, params = []) => {
        asked.push({ sql, params })
        return app.db.reader.all(sql, params)
      },
    })
    const table = app.tables.of(app.catalog.get(MODEL))
    const search = parseFindQuery(app.catalog, table.model, { limit: LIMIT, ...query }, 1_000)
    const found = await findPage(db, table, search)
    expect(asked).toHaveLength(1)
    const { records, total } = found
    return { records, total, asked: asked[0] as Asked }
  }
  const positionAt = async (sortBy: string, place: string): Promise<string> => {
    const [row] = await service.app.db.reader.all(
      `select "id", "many", "few" from "${MODEL}" where ${place} limit 1`,
    )
    const name = sortBy.replace('-', '')
    const key = sortBy === '' ? [] : [[sortBy, row?.[name] ?? null]]
    return Buffer.from(JSON.stringify([...key, Number(row?.['id'])])).toString('base64url')
  }

  const walks: readonly (readonly [sortBy: string, near: string, far: string])[] = [
    ['', '"id" = 5', `"id" = ${COUNT - 500}`],
    ['many', '"many" between 10 and 99', '"many" between 90000 and 99000'],
    ['-many', '"many" between 90000 and 99000', '"many" between 1000 and 1100'],
    ['many', '"many" is null and "id" < 900', `"many" is null and "id" > ${COUNT - 2_000}`],
    ['few', `"few" = 'a' and "id" < 900`, `"few" = 'b' and "id" > ${COUNT - 900}`],
    ['-few', `"few" = 'b' and "id" < 900`, `"few" = 'b' and "id" > ${COUNT - 900}`],
  ]
  test.for(walks)(
    'a page after a cursor sorted by "%s" reads a bounded number of rows: %s as %s',
    async ([sortBy, near, far]) => {
      for (const place of [near, far]) {
        const after = await positionAt(sortBy, place)
        const { asked, records } = await ask({ ...(sortBy === '' ? {} : { sortBy }), after })
        expect(records).toHaveLength(LIMIT)
        expect(await lookedAt(asked), asked.sql).toBeLessThan(8 * LIMIT)
      }
    },
  )

  test.for(['many', '-many', 'few'])(
    'the first page sorted by "%s" reads a bounded number of rows',
    async (sortBy) => {
      const { asked, records } = await ask({ sortBy })
      expect(records).toHaveLength(LIMIT)
      expect(await lookedAt(asked), asked.sql).toBeLessThan(8 * LIMIT)
    },
  )

  test('a page of one value after a cursor reads a bounded number of rows', async () => {
    for (const place of [`"few" = 'a' and "id" < 900`, `"few" = 'a' and "id" > ${COUNT - 900}`]) {
      const { asked, records } = await ask({ filter: `few = 'a'`, after: await positionAt('', place) })
      expect(records).toHaveLength(LIMIT)
      expect(await lookedAt(asked), asked.sql).toBeLessThan(8 * LIMIT)
    }
  })

  test('an offset skips records in the index alone', async () => {
    const { asked } = await ask({ filter: `few = 'a'`, offset: 4_000 })
    const { app } = service
    if (engine === 'sqlite') {
      const plan = await app.db.reader.all(`explain query plan ${asked.sql}`, asked.params)
      const lines = plan.map((row) => String(row['detail']))
      expect(lines.filter((line) => line.startsWith('SEARCH t ') || line.startsWith('SCAN t'))).toEqual([
        expect.stringMatching(/^SEARCH t USING COVERING INDEX \S+ \(few=\?\)$/),
        expect.stringMatching(/^SEARCH t USING INTEGER PRIMARY KEY/),
      ])
      return
    }
    const [row] = await app.db.reader.all(`explain (analyze, format json) ${asked.sql}`, asked.params)
    const scans = scansIn(row?.['QUERY PLAN'])
    const walked = scans.find((scan) => scan['Actual Rows'] > 1_000)
    expect([walked?.['Node Type'], walked?.['Heap Fetches']]).toEqual(['Index Only Scan', 0])
    const rest = scans.filter((scan) => scan !== walked && scan['Relation Name'] === MODEL)
    expect(rest.map((scan) => scan['Actual Rows'] * scan['Actual Loops'])).toEqual([LIMIT])
  })

  test('the counters find the block of an offset once, also after a rebuild', async () => {
    const { app } = service
    await rebuildCounters(app, app.catalog.get(MODEL))
    const { asked, records, total } = await ask({ offset: COUNT - 700 })
    expect([total, records.at(0)?.id]).toEqual([COUNT, COUNT - 699])
    if (engine === 'sqlite') return
    const [row] = await app.db.reader.all(`explain (analyze, format json) ${asked.sql}`, asked.params)
    const scans = scansIn(row?.['QUERY PLAN']).filter((scan) => scan['Relation Name'] === 'verso_count')
    expect(scans.map((scan) => scan['Actual Loops'])).toEqual(scans.map(() => 1))
    expect(scans).toHaveLength(COUNTER_LEVELS.length)
  })

  test('a page of deletes reads a bounded number of Changes, by an index of deletes', async () => {
    const { app } = service
    await app.db.transaction(async (tx) => {
      const numbers = `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${COUNT})`
      await tx.run(
        `insert into ${LOG_TABLE} (model, record, version, action, at_ms, changes) ${numbers} select '${MODEL}', ${COUNT} + n, 1, ` +
          `case when n % 50 = 0 then 'delete' else 'update' end, 0, '{}' from numbers`,
      )
      await tx.run(`analyze ${LOG_TABLE}`)
    })
    const asked: Asked[] = []
    const db: Queryable = unshared({
      all: (sql, params = []) => {
        asked.push({ sql, params })
        return app.db.reader.all(sql, params)
      },
    })
    const { changes } = await readDeletePage(db, MODEL, { before: COUNT / 2, limit: LIMIT })
    expect(changes).toHaveLength(LIMIT)
    const [statement] = asked as [Asked]
    if (engine === 'postgres') expect(await lookedAt(statement)).toBeLessThan(8 * LIMIT)
    else {
      const plan = await app.db.reader.all(`explain query plan ${statement.sql}`, statement.params)
      const lines = plan.map((row) => String(row['detail']))
      expect(lines).toContain(`SEARCH ${LOG_TABLE} USING INDEX verso_log_deleted (model=? AND seq<?)`)
      expect(lines.filter((line) => line.startsWith(`SCAN ${LOG_TABLE}`))).toEqual([])
    }
  })

  /** The number of rows and index entries that a statement reads; on SQLite, checks that every scan has a start. */
  const lookedAt = async ({ sql, params }: Asked): Promise<number> => {
    if (engine === 'sqlite') {
      const plan = await service.app.db.reader.all(`explain query plan ${sql}`, params)
      const lines = plan.map((row) => String(row['detail'])).filter((line) => /^(SEARCH|SCAN) t\b/.test(line))
      // Either a start in the index, or all entries of one value, with ids in order.
      const isRange = (line: string) =>
        /\((many|few)=\? AND rowid>\?\)|\((many|few|rowid)[<>]\?\)|\((many|few)=\?\)|PRIMARY KEY \(rowid=\?\)/.test(
          line,
        )
      expect(lines.filter((line) => !isRange(line))).toEqual([])
      return lines.length
    }
    const [row] = await service.app.db.reader.all(`explain (analyze, format json) ${sql}`, params)
    return scansIn(row?.['QUERY PLAN']).reduce(
      (sum, scan) =>
        sum + scan['Actual Loops'] * (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)),
      0,
    )
  }
})

/** Updates the statistics of the engines. */
async function settle({ app, location }: Service): Promise<void> {
  if (!location.url.startsWith('postgres')) {
    await app.db.transaction((tx) => tx.run('analyze'))
    return
  }
  // VACUUM does not run in a transaction.
  const client = new pg.Client({ connectionString: location.url })
  await client.connect()
  // Repeats until every page is all-visible: an open snapshot of another reader prevents it.
  for (let isKnown = false; !isKnown;) {
    await client.query(`vacuum (analyze) "${MODEL}"`)
    const known = `select relallvisible >= relpages as "all" from pg_class where oid = '"${MODEL}"'::regclass`
    isKnown = (await client.query<{ all: boolean }>(known)).rows[0]?.all ?? false
  }
  await client.end()
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Heap Fetches'?: number
  readonly Plans?: readonly Plan[]
}

/** The nodes that read a table or an index. */
function scansIn(answer: unknown): Plan[] {
  const parsed: unknown = typeof answer === 'string' ? JSON.parse(answer) : answer
  const [{ Plan: root }] = parsed as [{ Plan: Plan }]
  const all = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(all)]
  return all(root).filter((plan) => plan['Relation Name'] !== undefined)
}
