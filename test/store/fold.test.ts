// Both engines fold texts as the model does, checked with every character and with random texts.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import pg from 'pg'
import { ConfigError } from '../../src/errors.js'
import { foldText, buildLikePattern } from '../../src/model/values/text-folding.js'
import type { Database, Dialect } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { createInternalTables } from '../../src/store/schema/internal-tables.js'
import { createDatabase } from '../postgres.js'
import { newLocation, onEveryEngine, type Engine, type DatabaseLocation } from '../targets.js'

const TEXTS = {
  sqlite: `select value, key as "at" from json_each(?)`,
  postgres: `select value collate "C" as value, "at" from json_array_elements_text(?::json) with ordinality as each (value, "at")`,
}
const POINTS_IN_A_TEXT = 64
const TEXTS_IN_A_QUERY = 512

const open = (url: string) => openDatabase(url, { poolSize: 2, statementTimeoutMs: 60_000 })
const prepare = (db: Database) => db.transaction((tx) => createInternalTables(tx, db.dialect))

/** The texts that the engine folds differently from the model, with both results. */
async function differences(
  db: Database,
  engine: Engine,
  texts: readonly string[],
  foldSql: Dialect['fold'] = db.dialect.fold,
): Promise<string[][]> {
  const rows = await db.reader.all(
    `select ${foldSql('value')} as "folded" from (${TEXTS[engine]}) as texts order by "at"`,
    [JSON.stringify(texts)],
  )
  return texts.flatMap((text, index) => {
    const [expected, actual] = [foldText(text), String(rows[index]?.['folded'])]
    return expected === actual ? [] : [[text, expected, actual]]
  })
}

/** Every code point but NUL and surrogates, many to a text; separated by spaces on the first plane, where characters may compose. */
function* everyCharacter(): Generator<string> {
  for (let start = 0; start <= 0x10ffff; start += POINTS_IN_A_TEXT) {
    const points = Array.from({ length: POINTS_IN_A_TEXT }, (_, index) => start + index)
    const stored = points.filter((point) => point > 0 && (point < 0xd800 || point > 0xdfff))
    if (stored.length > 0)
      yield stored.map((point) => String.fromCodePoint(point)).join(start < 0x10000 ? ' ' : '')
  }
}

async function differencesOfAll(db: Database, engine: Engine, foldSql?: Dialect['fold']) {
  const texts = [...everyCharacter()]
  const found: string[][] = []
  for (let start = 0; start < texts.length; start += TEXTS_IN_A_QUERY) {
    found.push(...(await differences(db, engine, texts.slice(start, start + TEXTS_IN_A_QUERY), foldSql)))
  }
  return found
}

const characters = (text: string) => fc.constantFrom(...Array.from(text))

/** Letters, removed and kept marks, jamo, characters of every Unicode version, and any others. */
const unit = fc.oneof(
  { weight: 4, arbitrary: characters('aZ %_\\é\u0130ıßẞǽǾłĐΣςϒᾼЙёԱႠᎠꭰａ\u212B\u1E9B') },
  {
    weight: 3,
    arbitrary: characters('\u0301\u0323\u0345\u034F\u1ABF\u1ACF\u1DFA\u20F5\uFE2F\u0338'),
  },
  {
    weight: 2,
    arbitrary: characters('\u05B0\u05C1\u0483\u0653\u093C\u0C3C\u0EBA\u3099\u302A\u07FD'),
  },
  {
    weight: 3,
    arbitrary: characters('가각\u1100\u1161\u11A7\u11A8かは\u0915\u0958\u09C7\u09BE\u0BD7'),
  },
  {
    weight: 2,
    arbitrary: characters('漢\uF900😀🫠\u1C90\uA7C0\u2C2F\u{1E900}\u{1E944}\u{105C9}\u{11938}'),
  },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 0xd7ff }).map((point) => String.fromCodePoint(point)) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 0xe000, max: 0x10ffff }).map((point) => String.fromCodePoint(point)),
  },
)
const texts = fc.array(fc.string({ unit, maxLength: 12, size: 'max' }), {
  minLength: 1,
  maxLength: 200,
  size: 'max',
})

onEveryEngine((engine) => {
  let location: DatabaseLocation
  let db: Database
  beforeAll(async () => {
    location = await newLocation(engine)
    db = await open(location.url)
    await prepare(db)
  })
  afterAll(async () => {
    await db.close()
    location.remove()
  })

  test('the engine folds every character as the model does', async () => {
    expect(await differencesOfAll(db, engine)).toEqual([])
  })

  test('the engine folds texts of mixed scripts as the model does', async () => {
    await fc.assert(
      fc.asyncProperty(texts, async (some) => {
        expect(await differences(db, engine, some)).toEqual([])
      }),
      { numRuns: 40 },
    )
  })

  test('a mutant that only lowers the case is caught by both checks', async () => {
    const lower = (column: string) => `lower(${column})`
    expect((await differencesOfAll(db, engine, lower)).length).toBeGreaterThan(50)
    const found = fc.asyncProperty(texts, async (some) =>
      expect(await differences(db, engine, some, lower)).toEqual([]),
    )
    expect((await fc.check(found, { numRuns: 40, endOnFailure: true })).failed).toBe(true)
  })

  test('fold keeps null and the empty text', async () => {
    const sql = (value: string) =>
      `select ${db.dialect.fold('x')} as "folded" from (select ${value} as x) as one`
    expect(await db.reader.all(sql('cast(null as text)'))).toEqual([{ folded: null }])
    expect(await db.reader.all(sql(`cast('' as text)`))).toEqual([{ folded: '' }])
  })

  test.each([
    ['ELEVE', 'Élève', true],
    ['élève%', 'un élève', false],
    ['%ÉLÈVE', 'un élève', true],
    ['%ÉLÈVE', 'élèves', false],
    ['él_ve', 'ELEVE', true],
    ['él\\_ve', 'ELEVE', false],
    ['100\\%', '100% coton', true],
    ['100\\%', '1000 fois', false],
    ['\\', 'C:\\Temp', true],
    ['\\', 'C:/Temp', false],
    ['strasse', 'Straße', true],
    ['か', 'が', false],
    ['％', 'a', false],
    ['_', '', false],
    ['', '', true],
  ])('like %j on the text %j matches: %j', async (value, text, isFound) => {
    const [row] = await db.reader.all(
      `select 1 as "found" from (select cast(? as text) as x) as one where ${db.dialect.fold('x')} like ? escape '\\'`,
      [text, buildLikePattern(value)],
    )
    expect(row !== undefined).toBe(isFound)
  })
})

describe('fold on PostgreSQL', () => {
  async function query(url: string, sql: string): Promise<unknown[]> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  }

  async function start(url: string): Promise<void> {
    const db = await open(url)
    try {
      await prepare(db)
    } finally {
      await db.close()
    }
  }

  const versionOf = (url: string) =>
    query(url, `select xmin, prosrc from pg_proc where oid = to_regprocedure('verso_fold(text)')`)

  test('nodes that start concurrently create the fold function once, and later starts keep it', async () => {
    const url = await createDatabase(inject('postgresUrl'))
    await Promise.all([start(url), start(url), start(url), start(url)])
    const made = await versionOf(url)
    expect(made).toHaveLength(1)
    await start(url)
    expect(await versionOf(url)).toEqual(made)
  })

  test('a start replaces a fold function that differs', async () => {
    const url = await createDatabase(inject('postgresUrl'))
    await query(
      url,
      `create function verso_fold(given text) returns text language sql as 'select upper(given)'`,
    )
    await start(url)
    expect(await query(url, `select verso_fold('É') as "folded"`)).toEqual([{ folded: 'e' }])
  })

  async function startError(url: string): Promise<string> {
    const error = await start(url).catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(await query(url, `select tablename from pg_tables where tablename like 'verso%'`)).toEqual([])
    return (error as ConfigError).message
  }

  test.each(['LATIN1', 'SQL_ASCII'])(
    'a database with the encoding %s is rejected at start',
    async (encoding) => {
      const server = inject('postgresUrl')
      const name = `verso_${encoding.toLowerCase()}_${process.pid}`
      await query(server, `create database ${name} encoding '${encoding}' locale 'C' template template0`)
      const url = new URL(server)
      url.pathname = name
      expect(await startError(url.href)).toBe(
        `The database cannot be used:\n  - its encoding is ${encoding}: create a database with encoding UTF8`,
      )
    },
  )

  test('a PostgreSQL server without ICU is rejected at start', async () => {
    const url = await createDatabase(inject('postgresUrl'))
    await query(url, 'drop collation pg_catalog."und-x-icu"')
    expect(await startError(url)).toMatch(
      /has no collation "und-x-icu": use a PostgreSQL server built with ICU/,
    )
  })
})
