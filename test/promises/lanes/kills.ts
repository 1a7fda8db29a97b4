// kill -9 of a service on SQLite, of nodes on PostgreSQL, and of PostgreSQL itself, under load.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../../postgres.js'
import { checkWrites } from '../checked.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { percentile } from '../numbers.js'
import { Recorder, writeDuring } from '../recorder.js'
import { ServiceProcess } from '../service-process.js'

const SQLITE_KILLS = 40
const NODE_KILLS = 12
const POSTMASTER_KILLS = 5
const NODES = 3
const WRITERS = 12
const LOAD_MS = 700
const ANSWER_POLL_MS = 10

const SQLITE_BAR = `kill -9 of a service on SQLite, ${SQLITE_KILLS} times under load: nothing lost`
const NODE_BAR = `kill -9 of ${NODE_KILLS} nodes and ${POSTMASTER_KILLS} times of PostgreSQL, three nodes under load: nothing lost`
const BACK_BAR = 'PostgreSQL killed: a write is acknowledged at most 1 s after it accepts connections again'

export const killsLane: Lane = {
  name: 'kills',
  description:
    'SIGKILL of processes under load, 12 writers with Idempotency-Key; half of the unanswered writes are repeated with their key.',
  minutes: 8,
  bars: [SQLITE_BAR, NODE_BAR, BACK_BAR],
  needs: undefined,
  findObstacle: () => undefined,
  run: async (options) => [await killOnSqlite(options), ...(await killOnPostgres(options))],
}

function randomPause(): number {
  return LOAD_MS * (0.5 + Math.random())
}

async function killOnSqlite(options: LaneOptions): Promise<PromiseRow> {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-promise-'))
  const service = await ServiceProcess.start({ db: `sqlite:${path.join(folder, 'verso.db')}` })
  const recorder = new Recorder()
  const kills = Math.ceil(SQLITE_KILLS * options.scale)
  const startsMs: number[] = []
  try {
    for (let kill = 1; kill <= kills; kill++) {
      await writeDuring({ recorder, targets: [service.target], writers: WRITERS }, async () => {
        await sleep(randomPause())
        await service.end('SIGKILL')
      })
      const atMs = performance.now()
      await service.start()
      startsMs.push(performance.now() - atMs)
      await recorder.repeatHalf(service.target)
      if (kill % 10 === 0) options.log(`${kill} kills, ${recorder.count('acknowledged')} acknowledged writes`)
    }
    const faults = `${kills} kills, starts ${Math.round(percentile(startsMs, 0.5))} ms (median)`
    const row = await checkWrites({ recorder, target: service.target, bar: SQLITE_BAR, faults }, options)
    return { ...row, isHeld: row.isHeld && kills >= SQLITE_KILLS }
  } finally {
    await service.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function killOnPostgres(options: LaneOptions): Promise<PromiseRow[]> {
  const postgres = await startPostgres({ durable: true })
  const nodes: ServiceProcess[] = []
  const recorder = new Recorder()
  try {
    for (let i = 0; i < NODES; i++) nodes.push(await ServiceProcess.start({ db: postgres.url }))
    const targets = nodes.map(({ target }) => target)
    const load = { recorder, targets, writers: WRITERS }
    const nodeKills = Math.ceil(NODE_KILLS * options.scale)
    for (let kill = 0; kill < nodeKills; kill++) {
      const node = nodes[kill % NODES]
      // The other nodes go on while one starts.
      await writeDuring(load, async () => {
        await sleep(randomPause())
        await node?.end('SIGKILL')
        await node?.start()
      })
      if (targets[0]) await recorder.repeatHalf(targets[0])
    }
    options.log(`${nodeKills} nodes killed, ${recorder.count('acknowledged')} acknowledged writes`)
    const backMs: number[] = []
    const postmasterKills = Math.ceil(POSTMASTER_KILLS * options.scale)
    for (let kill = 0; kill < postmasterKills; kill++) {
      await writeDuring(load, async () => {
        await sleep(randomPause())
        await postgres.crash()
        await postgres.restart()
        backMs.push(await waitForAcknowledgement(recorder))
        await sleep(LOAD_MS)
      })
      if (targets[0]) await recorder.repeatHalf(targets[0])
    }
    options.log(`PostgreSQL killed ${postmasterKills} times`)
    const [target] = targets
    if (!target) throw new Error('there is no node')
    const faults = `${nodeKills} kills of nodes, ${postmasterKills} of PostgreSQL`
    const row = await checkWrites({ recorder, target, bar: NODE_BAR, faults }, options)
    const slowest = Math.max(...backMs)
    return [
      { ...row, isHeld: row.isHeld && nodeKills >= NODE_KILLS && postmasterKills >= POSTMASTER_KILLS },
      {
        bar: BACK_BAR,
        measured: `${backMs.map((ms) => Math.round(ms)).join(', ')} ms after the start was reported`,
        isHeld: slowest <= 1_000 && postmasterKills >= POSTMASTER_KILLS,
      },
    ]
  } finally {
    for (const node of nodes) await node.close()
    await postgres.stop()
  }
}

/** Resolves with the milliseconds until the next write is acknowledged. */
async function waitForAcknowledgement(recorder: Recorder): Promise<number> {
  const atMs = performance.now()
  const before = recorder.answers.get('200') ?? 0
  while ((recorder.answers.get('200') ?? 0) === before) await sleep(ANSWER_POLL_MS)
  return performance.now() - atMs
}
