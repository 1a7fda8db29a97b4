// npm run bench: this service beside a hand-written server, interleaved. It reports and asserts nothing; see docs/performance.md.
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { machine, notesOn, printMarkdown, printText, tableOf } from './report.mjs'
import { isFolderInMemory, own, SERVERS, startServers, stopAll } from './servers.mjs'

const USAGE = `npm run bench -- [--seconds 2] [--rounds 3] [--connections 32] [--rows 10000] [--markdown <file>]`
const WARM_UP_S = 1.5
const RECORDS_PER_CONNECTION = 4

/** Create comes last: it makes the tables longer, and not equally so. How a commit is stored matters to writes only. */
const PLAN = {
  read: ['verso', 'full'],
  find: ['verso', 'full'],
  update: ['verso', 'full', 'normal'],
  create: ['verso', 'full', 'normal'],
}

const root = fileURLToPath(new URL('..', import.meta.url))
const titles = Object.fromEntries(Object.entries(SERVERS).map(([name, { title }]) => [name, title]))
let isStopping = false

function readFlags() {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '3' },
      connections: { type: 'string', default: '32' },
      rows: { type: 'string', default: '10000' },
      markdown: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) {
    console.log(USAGE)
    process.exit()
  }
  const [seconds, rounds, connections, rows] = ['seconds', 'rounds', 'connections', 'rows'].map((name) => {
    const number = Number(values[name])
    if (number > 0 && (name === 'seconds' || Number.isInteger(number))) return number
    throw new Error(`--${name} must be a number above 0\n${USAGE}`)
  })
  if (rows < connections * RECORDS_PER_CONNECTION)
    throw new Error(`--rows must be at least ${RECORDS_PER_CONNECTION} for each connection`)
  return { seconds, rounds, connections, rows, markdown: values.markdown }
}

function buildIfMissing() {
  if (existsSync(new URL('../dist/cli/main.js', import.meta.url))) return
  console.log('building dist …')
  const compiler = ['node_modules/@typescript/native/bin/tsc', '-p', 'tsconfig.build.json']
  const { status } = spawnSync(process.execPath, compiler, { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error('dist could not be built')
}

async function measureAll(servers, { seconds, rounds, connections, rows }) {
  const load = own(fork(new URL('./load.mjs', import.meta.url)))
  const ended = once(load, 'exit').then(() => [{ error: 'the load generator has ended' }])
  const measure = async (operation, name, length) => {
    load.send({
      ...{ operation, server: servers[name], connections, rows, seconds: length },
      recordsPerConnection: RECORDS_PER_CONNECTION,
    })
    const [{ result, error }] = await Promise.race([once(load, 'message'), ended])
    if (error) throw new Error(`${operation} on ${titles[name]}: ${error}`)
    return result
  }
  const results = {}
  for (const [operation, names] of Object.entries(PLAN)) {
    results[operation] = Object.fromEntries(names.map((name) => [name, []]))
    for (const name of names) await measure(operation, name, Math.min(WARM_UP_S, seconds))
    for (let round = 0; round < rounds; round++) {
      // Nobody is always first.
      for (const name of rotate(names, round))
        results[operation][name].push(await measure(operation, name, seconds))
      process.stderr.write(`${operation}: round ${round + 1} of ${rounds}\n`)
    }
  }
  return results
}

function rotate(names, by) {
  const start = by % names.length
  return [...names.slice(start), ...names.slice(0, start)]
}

async function main() {
  const flags = readFlags()
  buildIfMissing()
  const { seconds, rounds, connections, rows } = flags
  const about = [
    machine(),
    `${rows} contacts, ${connections} connections, medians of ${rounds} interleaved rounds of ${seconds} s; ` +
      `ratios: middle (lowest–highest) of the rounds`,
  ]
  console.log(about.join('\n'))
  const results = await measureAll(await startServers(rows), flags)
  const table = tableOf(results, titles)
  const notes = notesOn(results, titles)
  if (isFolderInMemory())
    notes.push('the databases were in memory, so commits were free: set TMPDIR to a folder on a disk')
  console.log(['', printText(table), '', ...notes].join('\n'))
  // Alone on the machine.
  await stopAll()
  const { measurePermissions } = await import('./permissions.mjs')
  const permissions = await measurePermissions(rows)
  console.log(permissions.join('\n'))
  const { measureLogCost } = await import('./log-cost.mjs')
  console.log((await measureLogCost()).join('\n'))
  if (flags.markdown !== undefined) writeFileSync(flags.markdown, printMarkdown(table, about, notes))
}

for (const [signal, number] of Object.entries({ SIGINT: 2, SIGTERM: 15, SIGHUP: 1 })) {
  process.on(signal, async () => {
    if (isStopping) return
    isStopping = true
    await stopAll()
    process.exit(128 + number)
  })
}

try {
  await main()
} catch (error) {
  // While stopping, that a child has ended is no news.
  if (!isStopping) console.error(error.cause ? error : error.message)
  process.exitCode = 1
} finally {
  if (!isStopping) await stopAll()
}
