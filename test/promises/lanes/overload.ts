// More requests than the node can answer: `bench/overload.mjs`, whose generator does not wait for responses.
import { runBenchmark } from '../benchmark.js'
import type { Lane, PromiseRow } from '../lane.js'
import { describeStolen, percentile } from '../numbers.js'

const ROUNDS = 3
const SECONDS = 10
const MIN_GOODPUT = 0.85
const MAX_P99_RATIO = 3
const MAX_RSS_GROWTH_MB = 64

interface OpenLoopRun {
  readonly goodput: number
  readonly p99: number
  readonly statuses: Readonly<Record<string, number>>
  readonly withoutRetryAfter: number
  readonly lost: number
  readonly rssMb: number
  /** The part of the processor time that the host took. */
  readonly stolen: number
}

interface Round {
  readonly peak: { readonly perSecond: number; readonly waiting: number; readonly rssMb: number }
  readonly overload: OpenLoopRun
  readonly moderate: OpenLoopRun
}

interface Load {
  /** The name of the lane. */
  readonly lane: string
  /** In the names of the bars. */
  readonly name: string
  readonly engine: 'sqlite' | 'postgres'
  readonly words: readonly string[]
  /** A sentence. */
  readonly requests: string
}

const CHEAP = {
  words: ['--only', 'mixed', '--client', 'cookie'],
  requests: '60 % reads, 20 % lists, 10 % creates, 10 % updates of programs.',
} as const
/** The cheapest requests, and those of people: most of them cost much more than a refusal. */
const LOADS: readonly Load[] = [
  { lane: 'overload-sqlite', name: 'sqlite, cheap requests', engine: 'sqlite', ...CHEAP },
  {
    lane: 'overload-screens',
    name: 'sqlite, screens',
    engine: 'sqlite',
    words: ['--only', 'screens', '--client', 'browser'],
    requests:
      '40 % reads, 10 % lists, 30 % lists that are sorted or filtered by fields without an index, 10 % updates, 10 % creates of browsers.',
  },
  { lane: 'overload-postgres', name: 'postgres, cheap requests', engine: 'postgres', ...CHEAP },
]

const listBars = (name: string) => ({
  goodput: `overload on ${name}: at twice the peak rate, goodput at least ${MIN_GOODPUT} of the peak`,
  latency: `overload on ${name}: p99 of accepted requests at most ${MAX_P99_RATIO} times that at 80 % of the peak`,
  refused: `overload on ${name}: all other requests get 503 with Retry-After, and RSS grows by at most ${MAX_RSS_GROWTH_MB} MB`,
})

/** A lane for each load: together they would take too long. */
export const OVERLOAD_LANES: readonly Lane[] = LOADS.map(createOverloadLane)

function createOverloadLane({ lane, name, engine, words, requests }: Load): Lane {
  return {
    name: lane,
    description:
      `${ROUNDS} rounds: 3,000 clients that do not wait for each other, at rising rates until the peak, at twice its rate, and at 80 % of it. ` +
      `${requests} The service and PostgreSQL share one core; the clients have the other. Medians of the rounds. ` +
      'Rounds in which the host of a virtual machine took away more than 1 % of the processor time are repeated; the quietest rounds count.',
    minutes: 5,
    bars: Object.values(listBars(name)),
    needs: undefined,
    findObstacle: () => undefined,
    run: async (options) => {
      const rounds = Math.max(1, Math.round(ROUNDS * options.scale))
      const flags = ['--engines', engine, ...words, '--rounds', String(rounds), '--seconds', String(SECONDS)]
      const results = runBenchmark('overload', flags, options) as Readonly<Record<string, readonly Round[]>>
      return Promise.resolve(describe(name, results[engine] ?? []))
    },
  }
}

function describe(name: string, rounds: readonly Round[]): PromiseRow[] {
  const bars = listBars(name)
  const stolen = describeStolen(rounds.flatMap(({ overload, moderate }) => [overload, moderate]))
  const medianOf = (read: (round: Round) => number) => percentile(rounds.map(read), 0.5)
  const goodput = medianOf(({ peak, overload }) => overload.goodput / peak.perSecond)
  const p99Ratio = medianOf(({ overload, moderate }) => overload.p99 / moderate.p99)
  const growthMb = Math.max(...rounds.map(({ overload }) => overload.rssMb)) - (rounds[0]?.peak.rssMb ?? 0)
  const sum = (read: (run: OpenLoopRun) => number) =>
    rounds.reduce((total, { overload }) => total + read(overload), 0)
  const refused = sum(({ statuses }) => statuses[503] ?? 0)
  const others = sum(({ statuses }) =>
    Object.entries(statuses).reduce(
      (total, [status, count]) => (['200', '201', '503'].includes(status) ? total : total + count),
      0,
    ),
  )
  const without = sum(({ withoutRetryAfter, lost }) => withoutRetryAfter + lost)
  return [
    {
      bar: bars.goodput,
      measured:
        `peak ${Math.round(medianOf(({ peak }) => peak.perSecond))}/s (64 clients that wait for each response: ` +
        `${Math.round(medianOf(({ peak }) => peak.waiting))}/s); goodput ${goodput.toFixed(2)} of it${stolen}`,
      isHeld: goodput >= MIN_GOODPUT,
    },
    {
      bar: bars.latency,
      measured: `${medianOf(({ overload }) => overload.p99).toFixed(0)} ms, ${p99Ratio.toFixed(2)} times ${medianOf(({ moderate }) => moderate.p99).toFixed(0)} ms${stolen}`,
      isHeld: p99Ratio <= MAX_P99_RATIO,
    },
    {
      bar: bars.refused,
      measured: `${refused.toLocaleString('en')} refused, ${without} of them without Retry-After or without a response, ${others} other errors; RSS + ${growthMb.toFixed(0)} MB`,
      isHeld: refused > 0 && without === 0 && others === 0 && growthMb <= MAX_RSS_GROWTH_MB,
    },
  ]
}
