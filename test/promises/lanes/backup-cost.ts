// What a backup costs the service beside it, and a move of many records to the other engine: `bench/backup.mjs`.
import { runBenchmark } from '../benchmark.js'
import type { Lane, PromiseRow } from '../lane.js'
import { percentile } from '../numbers.js'

/** With more, PostgreSQL would not end within the time of a lane. */
const ROWS = { sqlite: 1_000_000, postgres: 200_000 } as const
const OTHER = { sqlite: 'PostgreSQL', postgres: 'SQLite' } as const
const NAMES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
const ENGINES = ['sqlite', 'postgres'] as const
const ROUNDS = 3
const SECONDS = 15
const MAX_P99_RATIO = 1.5
const MAX_RSS_GROWTH_MB = 64

type Engine = (typeof ENGINES)[number]

interface OpenLoopRun {
  readonly p99: number
  readonly rssMb: number
  readonly statuses: Readonly<Record<string, number>>
}

interface Result {
  readonly rounds: readonly { readonly alone: OpenLoopRun; readonly beside: OpenLoopRun }[]
  readonly backup: { readonly seconds: number; readonly mb: number; readonly rssMb: number }
  readonly restore: {
    readonly seconds: number
    readonly verifySeconds: number
    readonly records: number
    readonly changes: number
    readonly isEqual: boolean
  }
}

const formatCount = (count: number) => count.toLocaleString('en')

const listBars = (engine: Engine) => ({
  p99: `backup beside ${NAMES[engine]}: p99 of updates at most ${MAX_P99_RATIO} times that without it`,
  rss: `backup beside ${NAMES[engine]}: RSS of the service grows by at most ${MAX_RSS_GROWTH_MB} MB`,
  move: `${formatCount(ROWS[engine])} records with history moved from ${NAMES[engine]} to ${OTHER[engine]} and verified`,
})

export const backupCostLane: Lane = {
  name: 'backup-cost',
  description:
    `${ROUNDS} rounds: 200 updates/s from clients that do not wait for each other, alone and beside \`verso backup\`. ` +
    'Then `verso restore` into the other engine, `verso verify`, and a comparison of both databases.',
  minutes: 10,
  bars: ENGINES.flatMap((engine) => Object.values(listBars(engine))),
  needs: undefined,
  findObstacle: () => undefined,
  run: async (options) => {
    const rows: PromiseRow[] = []
    for (const engine of ENGINES) {
      const rounds = Math.max(1, Math.round(ROUNDS * options.scale))
      const count = Math.round(ROWS[engine] * Math.min(1, options.scale))
      const words = ['--engines', engine, '--rows', count, '--rounds', rounds, '--seconds', SECONDS]
      const result = runBenchmark('backup', words.map(String), options) as Record<string, Result>
      rows.push(...describe(engine, result[engine]))
    }
    return Promise.resolve(rows)
  },
}

function describe(engine: Engine, result: Result | undefined): PromiseRow[] {
  if (!result) throw new Error(`no result of ${engine}`)
  const { rounds, backup, restore } = result
  const bars = listBars(engine)
  const medianOf = (read: (round: Result['rounds'][number]) => number) => percentile(rounds.map(read), 0.5)
  const ratio = medianOf(({ alone, beside }) => beside.p99 / alone.p99)
  const growthMb = Math.max(...rounds.map(({ alone, beside }) => beside.rssMb - alone.rssMb))
  const failed = rounds.reduce((sum, { beside }) => sum + countFailed(beside), 0)
  return [
    {
      bar: bars.p99,
      measured:
        `${medianOf(({ alone }) => alone.p99).toFixed(1)} ms alone, ${medianOf(({ beside }) => beside.p99).toFixed(1)} ms beside it, ` +
        `ratios ${rounds.map(({ alone, beside }) => (beside.p99 / alone.p99).toFixed(2)).join(', ')}; ${failed} failed updates`,
      isHeld: ratio <= MAX_P99_RATIO && failed === 0,
    },
    {
      bar: bars.rss,
      measured: `+ ${growthMb.toFixed(0)} MB; the process of the backup had ${backup.rssMb.toFixed(0)} MB`,
      isHeld: growthMb <= MAX_RSS_GROWTH_MB,
    },
    {
      bar: bars.move,
      measured:
        `${formatCount(restore.records)} records and ${formatCount(restore.changes)} changes: backup ${backup.seconds.toFixed(0)} s, ${backup.mb.toFixed(0)} MB; ` +
        `restore ${restore.seconds.toFixed(0)} s; verify ${restore.verifySeconds.toFixed(0)} s; ${restore.isEqual ? 'equal' : 'not equal'}`,
      isHeld: restore.isEqual && restore.records >= ROWS[engine] && restore.changes > restore.records,
    },
  ]
}

function countFailed({ statuses }: OpenLoopRun): number {
  return Object.entries(statuses).reduce((sum, [status, count]) => (status === '200' ? sum : sum + count), 0)
}
