// npm run bench:import: compares `verso import` with a script that only inserts the same rows. It reports and asserts
// nothing; see docs/operations/performance.md.
import { isDeepStrictEqual } from 'node:util'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { MODEL, writeLines } from './contacts.mjs'
import { readFlags } from './flags.mjs'
import { findMedian, formatSpread, formatWhole } from './numbers.mjs'
import { runBenchmark, getFolder, runProgram, stopChild } from './processes.mjs'
import { runQueries } from './queries.mjs'
import { describeMachine } from './report.mjs'
import { printMarkdown, printText, writeSection } from './table.mjs'
import { buildIfMissing, createEmptyDatabase, MODELS, serve, runVerso } from './verso.mjs'

const BARE = fileURLToPath(new URL('./bare-import.mjs', import.meta.url))
const ENGINES = { sqlite: 'SQLite', postgres: 'PostgreSQL' }
const GOAL = 0.6
const SAMPLES = 50
const USAGE = `npm run bench:import -- [--rows 1000000] [--rounds 3] [--engines sqlite,postgres] [--markdown <file>]`
/** Columns that differ between two runs. */
const MOMENTS = ['createdOn', 'at_ms', 'seq']

const WAYS = {
  verso: (db, file) => runVerso(['import', '--models', MODELS.contact, '--db', db, file]),
  bare: (db, file) => runProgram(process.execPath, [BARE, db, file]),
}

/** Returns records per second of the whole process, and the rows that it wrote. */
async function timeImport(way, engine, { file, rows, round }) {
  const { db } = await createEmptyDatabase(engine, `import_${round}_${way}`)
  // The first start creates the tables.
  await stopChild((await serve(db, MODELS.contact)).child)
  const start = performance.now()
  await WAYS[way](db, file)
  const seconds = (performance.now() - start) / 1_000
  const left = await readSample(db, rows)
  await dropDatabase(db)
  return { perSecond: rows / seconds, left }
}

/** Reads counts and a sample of both tables. */
async function readSample(db, rows) {
  const ids = Array.from(
    { length: SAMPLES },
    (_, index) => 1 + Math.floor((index * (rows - 1)) / (SAMPLES - 1)),
  )
  const statements = [
    `select count(*) as total from "${MODEL}"`,
    `select count(*) as total from verso_log where model = '${MODEL}'`,
    `select * from "${MODEL}" where id in (${ids.join(', ')}) order by id`,
    `select * from verso_log where model = '${MODEL}' and record in (${ids.join(', ')}) order by record`,
  ]
  const found = await runQueries(db, statements)
  return found.map((some) =>
    some.map((row) =>
      Object.entries(row)
        .filter(([name]) => !MOMENTS.includes(name))
        .map(([name, value]) => [name, String(value)]),
    ),
  )
}

async function dropDatabase(db) {
  if (db.startsWith('sqlite:')) {
    for (const end of ['', '-wal', '-shm']) rmSync(`${db.slice('sqlite:'.length)}${end}`, { force: true })
    return
  }
  const url = new URL(db)
  const name = url.pathname.slice(1)
  url.pathname = '/postgres'
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query(`drop database "${name}" with (force)`)
  await client.end()
}

async function measureOn(engine, file, { rows, rounds }) {
  const perSecond = { verso: [], bare: [] }
  for (let round = 0; round < rounds; round++) {
    // The order alternates, so that neither always runs first.
    const order = round % 2 === 0 ? ['verso', 'bare'] : ['bare', 'verso']
    const left = {}
    for (const way of order) {
      const timed = await timeImport(way, engine, { file, rows, round })
      perSecond[way].push(timed.perSecond)
      left[way] = timed.left
    }
    if (!isDeepStrictEqual(left.verso, left.bare))
      throw new Error(`${ENGINES[engine]}: the two left different rows: ${describeDifference(left)}`)
    if (left.verso[0][0][0][1] !== String(rows))
      throw new Error(`${ENGINES[engine]}: there are ${left.verso[0][0][0][1]} records`)
    process.stderr.write(`${ENGINES[engine]}: round ${round + 1} of ${rounds}\n`)
  }
  const ratios = perSecond.verso.map((number, round) => number / perSecond.bare[round])
  return [
    ...[
      ENGINES[engine],
      formatWhole(findMedian(perSecond.verso)),
      formatWhole(findMedian(perSecond.bare)),
      formatSpread(ratios),
    ],
    findMedian(ratios) >= GOAL ? 'reached' : 'missed',
  ]
}

function describeDifference({ verso: ours, bare }) {
  const at = ours.findIndex((some, index) => !isDeepStrictEqual(some, bare[index]))
  const row = ours[at].findIndex((each, index) => !isDeepStrictEqual(each, bare[at][index]))
  return `${JSON.stringify(ours[at][row])} and ${JSON.stringify(bare[at]?.[row])}`
}

await runBenchmark(async () => {
  const flags = readFlags(USAGE, {
    ...{ rows: { number: 1_000_000 }, rounds: { number: 3 } },
    ...{ engines: { names: Object.keys(ENGINES) }, markdown: { file: true } },
  })
  await buildIfMissing()
  const about = [
    describeMachine(),
    `${formatWhole(flags.rows)} contacts as lines of JSON; medians of ${flags.rounds} interleaved rounds, from the start of the program to its end.`,
  ]
  console.log(about.join('\n'))
  const file = path.join(getFolder(), `${MODEL}.ndjson`)
  await writeLines(file, flags.rows)
  const rows = []
  for (const engine of flags.engines) rows.push(await measureOn(engine, file, flags))
  const headings = [
    'engine',
    'verso import, records/s',
    'bare script, records/s',
    'verso ÷ bare',
    `goal ≥ ${GOAL}`,
  ]
  console.log(`\n${printText({ headings, rows })}`)
  if (flags.markdown !== undefined)
    writeSection(flags.markdown, 'import', [...about, printMarkdown({ headings, rows })].join('\n\n'))
})
