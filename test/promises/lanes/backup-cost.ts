// What a backup costs the service beside it, and a move of many records to the other engine: `bench/backup.mjs`.
import { runBenchmark } from '../benchmark.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { describeStolen, percentile } from '../numbers.js'

const formatCount = (count: number) => count.toLocaleString('en')

const OTHER = { sqlite: 'PostgreSQL', postgres: 'SQLite' } as const
const NAMES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
const COST_ROWS = 100_000
/** With more, PostgreSQL would not end within the time of a lane. */
const MOVED_ROWS = { sqlite: 1_000_000, postgres: 200_000 } as const
const ROUNDS = 5
const SECONDS = 20
const MAX_P99_RATIO = 1.5
const MAX_RSS_GROWTH_MB = 64

type Engine = keyof typeof NAMES

interface OpenLoopRun {
  readonly p99: number
  readonly rssMb: number
  /** The part of the processor time that the host took. */
  readonly stolen: number
  readonly statuses: Readonly<Record<string, number>>
}

interface RunBesideBackup extends OpenLoopRun {
  /** How many backups have ended during the run. The end may cost most. */
  readonly backups: number
}

interface Result {
  readonly rounds: readonly { readonly alone: OpenLoopRun; readonly beside: RunBesideBackup }[]
  readonly backup: { readonly seconds: number; readonly mb: number; readonly rssMb: number }
  readonly restore?: {
    readonly seconds: number
    readonly verifySeconds: number
    readonly records: number
    readonly changes: number
    readonly isEqual: boolean
  }
}

const listCostBars = (engine: Engine) => ({
  p99: `backup beside ${NAMES[engine]}: p99 of updates at most ${MAX_P99_RATIO} times that without it`,
  rss: `backup beside ${NAMES[engine]}: RSS of the service grows by at most ${MAX_RSS_GROWTH_MB} MB`,
})

const nameMoveBar = (engine: Engine) =>
  `${formatCount(MOVED_ROWS[engine])} records with history moved from ${NAMES[engine]} to ${OTHER[engine]} and verified`

/** A lane for each measurement: together they would take too long. */
export const BACKUP_COST_LANES: readonly Lane[] = [
  createCostLane('sqlite'),
  createCostLane('postgres'),
  createMoveLane('sqlite', 10),
  createMoveLane('postgres', 3),
]

function createCostLane(engine: Engine): Lane {
  return {
    name: `backup-cost-${engine}`,
    description:
      `${ROUNDS} rounds: 200 updates/s from clients that do not wait for each other, ${SECONDS} s alone and ${SECONDS} s beside ` +
      `\`verso backup\`, which begins again when it ends. ${formatCount(COST_ROWS)} records. Median of the rounds; rounds in which the host of a ` +
      'virtual machine took away more than 1 % of the processor time are repeated; the quietest rounds count.',
    minutes: 6,
    bars: Object.values(listCostBars(engine)),
    needs: undefined,
    findObstacle: () => undefined,
    run: async (options) => {
      const rounds = Math.max(1, Math.round(ROUNDS * options.scale))
      const words = ['--parts', 'cost', '--rows', COST_ROWS, '--rounds', rounds, '--seconds', SECONDS]
      return Promise.resolve(describeCost(engine, run(engine, words, options)))
    },
  }
}

function createMoveLane(engine: Engine, minutes: number): Lane {
  return {
    name: `backup-move-${engine}`,
    description:
      '`verso backup` of records with history, `verso restore` into the other engine, `verso verify`, and a comparison of both databases.',
    minutes,
    bars: [nameMoveBar(engine)],
    needs: undefined,
    findObstacle: () => undefined,
    run: async (options) => {
      const count = Math.round(MOVED_ROWS[engine] * Math.min(1, options.scale))
      return Promise.resolve([
        describeMove(engine, run(engine, ['--parts', 'move', '--rows', count], options)),
      ])
    },
  }
}

function run(engine: Engine, words: readonly (string | number)[], options: LaneOptions): Result {
  const all = ['--engines', engine, ...words.map(String)]
  const result = (runBenchmark('backup', all, options) as Record<string, Result>)[engine]
  if (!result) throw new Error(`no result of ${engine}`)
  return result
}

function describeCost(engine: Engine, { rounds, backup }: Result): PromiseRow[] {
  const bars = listCostBars(engine)
  const medianOf = (read: (round: Result['rounds'][number]) => number) => percentile(rounds.map(read), 0.5)
  const ratio = medianOf(({ alone, beside }) => beside.p99 / alone.p99)
  const growthMb = Math.max(...rounds.map(({ alone, beside }) => beside.rssMb - alone.rssMb))
  const backups = Math.min(...rounds.map(({ beside }) => beside.backups))
  const failed = rounds.reduce((sum, { beside }) => sum + countFailed(beside), 0)
  return [
    {
      bar: bars.p99,
      measured:
        `${medianOf(({ alone }) => alone.p99).toFixed(1)} ms alone, ${medianOf(({ beside }) => beside.p99).toFixed(1)} ms beside it, ` +
        `ratios ${rounds.map(({ alone, beside }) => (beside.p99 / alone.p99).toFixed(2)).join(', ')}; ${failed} failed updates; ${backups} backups or more ended in each round${describeStolen(rounds.flatMap(({ alone, beside }) => [alone, beside]))}`,
      isHeld: ratio <= MAX_P99_RATIO && failed === 0 && backups > 0,
    },
    {
      bar: bars.rss,
      measured: `+ ${growthMb.toFixed(0)} MB; the process of the backup had ${backup.rssMb.toFixed(0)} MB`,
      isHeld: growthMb <= MAX_RSS_GROWTH_MB,
    },
  ]
}

function describeMove(engine: Engine, { backup, restore }: Result): PromiseRow {
  if (!restore) throw new Error('nothing was restored')
  return {
    bar: nameMoveBar(engine),
    measured:
      `${formatCount(restore.records)} records and ${formatCount(restore.changes)} changes: backup ${backup.seconds.toFixed(0)} s, ${backup.mb.toFixed(0)} MB; ` +
      `restore ${restore.seconds.toFixed(0)} s; verify ${restore.verifySeconds.toFixed(0)} s; ${restore.isEqual ? 'equal' : 'not equal'}`,
    isHeld: restore.isEqual && restore.records >= MOVED_ROWS[engine] && restore.changes > restore.records,
  }
}

function countFailed({ statuses }: OpenLoopRun): number {
  return Object.entries(statuses).reduce((sum, [status, count]) => (status === '200' ? sum : sum + count), 0)
}
