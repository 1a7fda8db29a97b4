// npm run trace: counts the files, functions and calls of dist that run for one request of a service that has been in
// use for a while. Usage: node scripts/trace-request.mjs [--list] [--check] [--difference cookie,proxy] [--only update]
// [--engine sqlite|postgres] [--root <a built checkout>]
import { readFileSync, realpathSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createJiti } from 'jiti'
import { printText } from '../bench/table.mjs'
import { startTracedService } from './traced-service.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LAYERS = ['http', 'service', 'model', 'store']
const KINDS = ['cookie', 'key', 'browser', 'proxy']
const WARM_UP_REQUESTS = 10
/** Functions that run in every one of these requests count, so that timers of the service do not. */
const TRACED_REQUESTS = 3
/** Time for the work after an answer, such as the request log. */
const SETTLE_MS = 25
const UPDATE_HEADING = '## The life of an update'
const CHECKED_KINDS = ['cookie', 'key', 'proxy']

/** Traces requests: send() → Map of file → Map of function → calls. The file is a path inside dist, without its ending. */
async function createTracer(dist) {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const trace = async (send) => {
    await session.post('Profiler.takePreciseCoverage')
    await send()
    await sleep(SETTLE_MS)
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return listCalls(result, dist)
  }
  return { trace, stop: () => session.disconnect() }
}

/** Leaves out the code at the top level of a module, whose range is the whole script. */
export function listCalls(scripts, dist) {
  const files = new Map()
  for (const { url, functions } of scripts) {
    if (!url.startsWith('file:')) continue
    const file = path.relative(dist, fileURLToPath(url)).replaceAll(path.sep, '/')
    if (file.startsWith('..')) continue
    const calls = new Map()
    for (const { functionName, ranges } of functions) {
      const [{ startOffset, count }] = ranges
      if (count > 0 && startOffset > 0) calls.set(`${functionName || 'function'}@${startOffset}`, count)
    }
    if (calls.size > 0) files.set(file.replace(/\.js$/, ''), calls)
  }
  return files
}

/** Keeps the functions that ran in every trace, with their lowest number of calls. */
export function intersect(traces) {
  const [first, ...others] = traces
  const kept = [...first].map(([file, calls]) => {
    const counts = [...calls].map(([name, count]) => [
      name,
      Math.min(count, ...others.map((trace) => trace.get(file)?.get(name) ?? 0)),
    ])
    return [file, new Map(counts.filter(([, count]) => count > 0))]
  })
  return new Map(kept.filter(([, calls]) => calls.size > 0))
}

async function traceAll({ kinds, requests }, tracer, titles) {
  const traces = {}
  for (const [title, build] of Object.entries(requests)) {
    if (titles && !titles.includes(title)) continue
    for (const kind of title === 'update' ? KINDS : ['cookie']) {
      const client = kinds[kind]
      for (let count = 0; count < WARM_UP_REQUESTS; count++) await client.send(await build(client))
      const found = []
      for (let count = 0; count < TRACED_REQUESTS; count++) {
        const request = await build(client)
        found.push(await tracer.trace(() => client.send(request)))
      }
      traces[`${title}, ${kind}`] = intersect(found)
    }
  }
  return traces
}

function countLayer(trace, layer) {
  return [...trace.keys()].filter((file) => file.startsWith(`${layer}/`)).length
}

/** Returns headings and rows; files outside the four layers count in the sum only. */
export function buildTraceTable(traces) {
  const rows = Object.entries(traces).map(([title, trace]) => {
    const calls = [...trace.values()].map((functions) => [...functions.values()])
    return [
      ...[title, trace.size, calls.flat().length, calls.flat().reduce((sum, count) => sum + count, 0)],
      LAYERS.map((layer) => countLayer(trace, layer)).join(' · '),
    ].map(String)
  })
  return { headings: ['request', 'files', 'functions', 'calls', LAYERS.join(' · ')], rows }
}

/** Lists the files that only one of two traces has. */
export function findDifference(one, other) {
  const missing = (from, to) => [...from.keys()].filter((file) => !to.has(file)).sort()
  return { left: missing(one, other), right: missing(other, one) }
}

/** Names files of the paragraph: { plain, conflict }. A sentence about a `conflict` names files of a stale update. */
export function findNamedFiles(text) {
  const start = text.indexOf(UPDATE_HEADING)
  if (start < 0) return { plain: [], conflict: [] }
  const [heading = ''] = text.slice(start).split('\n', 1)
  const body = text.slice(start + heading.length)
  const sentences = body.slice(0, body.search(/\n## |$(?![^])/)).split(/(?<=[.:])\s/)
  const named = { plain: new Set(), conflict: new Set() }
  for (const sentence of sentences) {
    const files = [...sentence.matchAll(/`([a-z]+(?:\/[a-z-]+)+)`/g)].map(([, file]) => file)
    for (const file of files) named[sentence.includes('`conflict`') ? 'conflict' : 'plain'].add(file)
  }
  return { plain: [...named.plain], conflict: [...named.conflict] }
}

/** The most files that an update may run. */
const MAX_UPDATE_FILES = { sqlite: 40, postgres: 42 }

/**
 * Returns the faults of the paragraph about an update, given the traces of updates by kind and of a stale one. All kinds
 * run the same files.
 */
export function findFaults(text, updates, stale, maxFiles = MAX_UPDATE_FILES.sqlite) {
  const { plain, conflict } = findNamedFiles(text)
  const faults = plain.length === 0 ? ['ARCHITECTURE.md names no file in the life of an update'] : []
  const hasRun = (trace, name) =>
    [...trace.keys()].some((file) => file === name || file.startsWith(`${name}/`))
  for (const [kind, trace] of Object.entries(updates)) {
    if (trace.size > maxFiles)
      faults.push(`an update with ${kind} runs ${trace.size} files, more than ${maxFiles}`)
    for (const name of plain)
      if (!hasRun(trace, name)) faults.push(`${name} does not run in an update with ${kind}`)
  }
  for (const name of conflict) if (!hasRun(stale, name)) faults.push(`${name} does not run in a stale update`)
  const [[first, expected], ...others] = Object.entries(updates)
  for (const [kind, trace] of others) {
    const { left, right } = findDifference(expected, trace)
    for (const file of left) faults.push(`${file} runs in an update with ${first}, not with ${kind}`)
    for (const file of right) faults.push(`${file} runs in an update with ${kind}, not with ${first}`)
  }
  return faults
}

function printList(title, trace) {
  console.log(`\n${title}: ${trace.size} files`)
  const place = (file) => {
    const index = LAYERS.indexOf(file.split('/')[0])
    return index < 0 ? LAYERS.length : index
  }
  for (const [file, calls] of [...trace].sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1)))
    console.log(
      `  ${file}: ${[...calls].map(([name, count]) => name.split('@')[0] + (count > 1 ? ` ×${count}` : '')).join(', ')}`,
    )
}

async function main() {
  const { values } = parseArgs({
    options: {
      ...{ list: { type: 'boolean' }, check: { type: 'boolean' }, difference: { type: 'string' } },
      ...{ only: { type: 'string' }, engine: { type: 'string' }, root: { type: 'string' } },
    },
  })
  const dist = path.join(realpathSync(values.root ?? ROOT), 'dist')
  const postgres = values.engine === 'postgres' ? await startPostgres() : undefined
  const service = await startTracedService({ dist, db: postgres?.db })
  const tracer = await createTracer(dist)
  const titles = values.check ? ['update', 'stale update'] : values.only?.split(',')
  const traces = await traceAll(service, tracer, titles)
  tracer.stop()
  await service.close()
  await postgres?.stop()
  console.log(printText(buildTraceTable(traces)))
  if (values.list) for (const [title, trace] of Object.entries(traces)) printList(title, trace)
  if (values.difference) printDifference(traces, values.difference.split(','))
  if (values.check) check(traces, MAX_UPDATE_FILES[postgres ? 'postgres' : 'sqlite'])
}

async function startPostgres() {
  const { startPostgres: start, createDatabase } = await createJiti(import.meta.url).import(
    '../test/postgres.ts',
  )
  const server = await start({ durable: false })
  return { db: await createDatabase(server.url), stop: () => server.stop() }
}

function printDifference(traces, [one, other]) {
  const { left, right } = findDifference(traces[`update, ${one}`], traces[`update, ${other}`])
  console.log(
    `\nonly with ${one}: ${left.join(', ') || 'none'}\nonly with ${other}: ${right.join(', ') || 'none'}`,
  )
}

function check(traces, maxFiles) {
  const updates = Object.fromEntries(CHECKED_KINDS.map((kind) => [kind, traces[`update, ${kind}`]]))
  const text = readFileSync(path.join(ROOT, 'ARCHITECTURE.md'), 'utf8')
  const faults = findFaults(text, updates, traces['stale update, cookie'], maxFiles)
  for (const fault of faults) console.log(fault)
  if (faults.length === 0) console.log('the life of an update is as ARCHITECTURE.md tells it')
  process.exitCode = faults.length > 0 ? 1 : 0
}

if (realpathSync(process.argv[1]) === import.meta.filename) await main()
