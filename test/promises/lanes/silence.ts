// PostgreSQL that stops responding without closing a connection: its processes are stopped, or its packets are dropped.
import { setTimeout as sleep } from 'node:timers/promises'
import { canDropPackets, SILENCES } from '../../faults/silence.js'
import { startPostgres } from '../../postgres.js'
import { checkWrites } from '../checked.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { describeAnswers } from '../numbers.js'
import { Recorder, writeDuring } from '../recorder.js'
import { ServiceProcess } from '../service-process.js'

const KINDS = ['all its processes are stopped', 'its packets are dropped'] as const
const TIMES = 3
const NODES = 3
const WRITERS = 12
const SILENCE_MS = 10_000
const LOAD_MS = 2_000
const LIMIT_MS = 6_000
const HEALED_MS = 1_000
const POLL_MS = 10

const ANSWER_BAR =
  'PostgreSQL silent for 10 s (SIGSTOP, dropped packets): each request is answered within 6 s'
const HEAL_BAR = 'PostgreSQL silent for 10 s: a write is acknowledged within 1 s after the silence'
const WRITES_BAR = 'PostgreSQL silent for 10 s: nothing lost or stored twice'

export const silenceLane: Lane = {
  name: 'silence',
  description: `${TIMES} silences of each kind under load of ${WRITERS} writers on ${NODES} nodes.`,
  minutes: 4,
  bars: [ANSWER_BAR, HEAL_BAR, WRITES_BAR],
  needs: 'root and iptables',
  findObstacle: () => (canDropPackets() ? undefined : 'dropping packets needs root and iptables'),
  run: async (options) => silence(options),
}

async function silence(options: LaneOptions): Promise<PromiseRow[]> {
  const postgres = await startPostgres({ durable: true })
  const nodes: ServiceProcess[] = []
  const recorder = new Recorder()
  const healedMs: number[] = []
  const times = Math.ceil(TIMES * options.scale)
  try {
    for (let i = 0; i < NODES; i++) nodes.push(await ServiceProcess.start({ db: postgres.url }))
    const targets = nodes.map(({ target }) => target)
    const [target] = targets
    if (!target) throw new Error('there is no node')
    for (const kind of KINDS) {
      const silent = await SILENCES[kind]?.(postgres, postgres.url)
      if (!silent) throw new Error(`no such silence: ${kind}`)
      try {
        for (let time = 0; time < times; time++) {
          await writeDuring({ recorder, targets, writers: WRITERS }, async () => {
            await sleep(LOAD_MS)
            silent.begin()
            await sleep(SILENCE_MS)
            const before = recorder.answers.get('200') ?? 0
            silent.end()
            const endMs = performance.now()
            while ((recorder.answers.get('200') ?? 0) === before) await sleep(POLL_MS)
            healedMs.push(performance.now() - endMs)
            await sleep(LOAD_MS)
          })
          await recorder.repeatHalf(target)
        }
      } finally {
        await silent.close()
      }
      options.log(`${kind}: ${describeAnswers(recorder.answers)}`)
    }
    const slowestMs = Math.max(...recorder.latenciesMs)
    const lost = recorder.answers.get('lost') ?? 0
    const faults = `${times} silences of each kind`
    const isFull = times >= TIMES
    const written = await checkWrites({ recorder, target, bar: WRITES_BAR, faults }, options)
    return [
      {
        bar: ANSWER_BAR,
        measured: `${faults}: the slowest of ${recorder.latenciesMs.length.toLocaleString('en')} answers took ${(slowestMs / 1_000).toFixed(2)} s, ${lost} requests without an answer; ${describeAnswers(recorder.answers)}`,
        isHeld: slowestMs <= LIMIT_MS && lost === 0 && isFull,
      },
      {
        bar: HEAL_BAR,
        measured: `${healedMs.map((ms) => Math.round(ms)).join(', ')} ms`,
        isHeld: Math.max(...healedMs) <= HEALED_MS && isFull,
      },
      { ...written, isHeld: written.isHeld && isFull },
    ]
  } finally {
    for (const node of nodes) await node.close()
    await postgres.stop()
  }
}
