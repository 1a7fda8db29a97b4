// npm run bench:backup: writes beside a backup of the running service, compared with writes alone; then the backup is restored into the other
// engine, and both databases are compared.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { readFlags } from './flags.mjs'
import { MODEL } from './contacts.mjs'
import { findMedian, formatWhole } from './numbers.mjs'
import { measureQuietRounds } from './quiet.mjs'
import { getFolder, registerChild, runBenchmark, startLoadGenerator, stopServers } from './processes.mjs'
import { runQueries } from './queries.mjs'
import { readRssMb } from './usage.mjs'
import { ALL_MODELS, buildIfMissing, createEmptyDatabase, runVerso, SERVICE, startVerso } from './verso.mjs'

const USAGE = `npm run bench:backup -- [--engines sqlite,postgres] [--rows 200000] [--parts cost,move] [--rounds 5] [--seconds 20] [--rate 200: updates per second]
  [--json <file>]`
const CLIENT = 'cookie'
const CONNECTIONS = 50
/** Gives some records more history than others. */
const HISTORY_SECONDS = 10
const RSS_EVERY_MS = 100
const OTHER = { sqlite: 'postgres', postgres: 'sqlite' }
/** What must be equal after a restore. */
const COMPARED = [
  `select count(*) as n, sum(id + version) as ids from "${MODEL}"`,
  `select count(*) as n, sum(seq + record + version) as ids from verso_log where model = '${MODEL}'`,
]

/** Returns { rounds: [{ alone, beside }], backup: { seconds, mb, rssMb }, restore: { seconds, rows, log } }, without `restore` if only the cost is measured. */
async function measure(engine, { rows, parts, rounds: count, seconds, rate }) {
  const verso = await startVerso(engine, { rows, clients: [CLIENT], rounds: 1, timedStarts: 1 })
  const load = startLoadGenerator()
  const file = path.join(getFolder(), `${engine}.backup`)
  try {
    const common = {
      server: { ...verso, ...verso.opened[CLIENT] },
      ...{ rows, operation: 'update', connections: CONNECTIONS },
    }
    await load.run({ ...common, seconds: HISTORY_SECONDS })
    const update = () =>
      load.run({
        ...{ ...common, firstConnection: CONNECTIONS },
        ...{ perSecond: rate, seconds, warmUpSeconds: 1 },
      })
    const measureRound = async (number) => {
      const alone = await update()
      const backups = repeatBackup(verso.db, file)
      const beside = await update()
      const round = { alone, beside: { ...beside, backups: backups.ended } }
      await backups.end()
      console.log(describeRound(`${engine}, round ${number}`, round))
      return round
    }
    const rounds = parts.includes('cost') ? await measureQuietRounds(count, measureRound) : []
    rmSync(file, { force: true })
    const backup = await backUp(verso.db, file)
    console.log(
      `${engine}: a backup took ${backup.seconds.toFixed(1)} s, ${backup.mb.toFixed(1)} MB, its process had ${Math.round(backup.rssMb)} MB`,
    )
    if (!parts.includes('move')) return { rounds, backup }
    const restore = await restoreIntoOther(engine, verso.db, file)
    console.log(
      `${engine} to ${OTHER[engine]}: ${formatWhole(restore.records)} records and ${formatWhole(restore.changes)} changes restored in ` +
        `${restore.seconds.toFixed(1)} s, verified in ${restore.verifySeconds.toFixed(1)} s, ${restore.isEqual ? 'equal' : 'NOT EQUAL'}`,
    )
    return { rounds, backup, restore }
  } finally {
    await load.end()
    await stopServers()
  }
}

/** Backs up again and again until `end` is called, which waits for the last backup. */
function repeatBackup(db, file) {
  let isOver = false
  let ended = 0
  const run = async () => {
    do {
      rmSync(file, { force: true })
      await backUp(db, file)
      ended++
    } while (!isOver)
  }
  const last = run()
  // `end` reports it.
  last.catch(() => undefined)
  return {
    get ended() {
      return ended
    },
    end: () => {
      isOver = true
      return last
    },
  }
}

async function backUp(db, file) {
  const startMs = performance.now()
  const child = registerChild(
    spawn(process.execPath, [SERVICE, 'backup', file, '--db', db], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
  let rssMb = 0
  const timer = setInterval(() => (rssMb = Math.max(rssMb, readRssMb(child.pid))), RSS_EVERY_MS)
  const [code] = await once(child, 'exit')
  clearInterval(timer)
  if (code !== 0) throw new Error(`verso backup ended with ${code}`)
  return { seconds: (performance.now() - startMs) / 1_000, mb: statSync(file).size / 1_048_576, rssMb }
}

async function restoreIntoOther(engine, from, file) {
  const { db } = await createEmptyDatabase(OTHER[engine], `restored_${engine}`)
  const timed = async (words) => {
    const startMs = performance.now()
    await runVerso([...words, '--models', ALL_MODELS, '--db', db])
    return (performance.now() - startMs) / 1_000
  }
  // A service that is stopped for good: it keeps the numbers of all changes. See docs/operations/backup.md.
  const seconds = await timed(['restore', file, '--moved'])
  const verifySeconds = await timed(['verify'])
  const [before, after] = [await runQueries(from, COMPARED), await runQueries(db, COMPARED)]
  const [[{ n: records }], [{ n: changes }]] = after
  const isEqual = JSON.stringify(toNumbers(before)) === JSON.stringify(toNumbers(after))
  return { seconds, verifySeconds, records: Number(records), changes: Number(changes), isEqual }
}

function toNumbers(results) {
  return results.map((rows) => rows.map(({ n, ids }) => [Number(n), Number(ids)]))
}

function describeRound(title, { alone, beside }) {
  return (
    `${title}: p99 of updates alone ${alone.p99.toFixed(1)} ms, beside a backup ${beside.p99.toFixed(1)} ms (${(beside.p99 / alone.p99).toFixed(2)} times); ` +
    `p50 ${alone.p50.toFixed(1)} and ${beside.p50.toFixed(1)} ms; service ${Math.round(alone.rssMb)} and ${Math.round(beside.rssMb)} MB; ` +
    `answers ${JSON.stringify(beside.statuses)}; ${beside.backups} backups ended; stolen ${[alone, beside].map(({ stolen }) => `${(stolen * 100).toFixed(1)} %`).join(' and ')}`
  )
}

await runBenchmark(async () => {
  const { json, engines, ...flags } = readFlags(USAGE, {
    engines: { names: ['sqlite', 'postgres'] },
    parts: { names: ['cost', 'move'] },
    ...{ rows: { number: 200_000 }, rounds: { number: 5 }, seconds: { number: 20 }, rate: { number: 200 } },
    json: { file: true },
  })
  await buildIfMissing()
  const results = {}
  for (const engine of engines) {
    results[engine] = await measure(engine, flags)
    if (results[engine].rounds.length === 0) continue
    const ratio = findMedian(results[engine].rounds.map(({ alone, beside }) => beside.p99 / alone.p99))
    console.log(`${engine}: p99 beside a backup ${ratio.toFixed(2)} times that alone, median of the rounds`)
  }
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(results, undefined, 2)}\n`)
})
