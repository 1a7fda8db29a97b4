// One run: clients, a feed reader and kills beside each other; then what became of everything, and what is wrong with it.
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../errors.js'
import { Lost, NotSent, type Adapter } from './adapter.js'
import { Caller, type Ground, type Trouble } from './caller.js'
import { check } from './checker.js'
import { keepEditing, newSlot } from './clients.js'
import { Connection, type Place } from './connection.js'
import { FeedReader } from './feed-reader.js'
import { Journal } from './journal.js'
import { cleanUp, settle, strays, type Table } from './judge.js'
import type { Nodes } from './nodes.js'
import { Random } from './random.js'
import type { Violation } from './violation.js'

const LONGEST_PAUSE_MS = 60_000
/** A run that has not seen enough goes on, at most so many times as long, or so many seconds if that is more. */
const PATIENCE = { times: 3, seconds: 30 }
const TICK_MS = 200
const UNTROUBLED: Trouble = { drop: 0, keyed: 1, duplicates: 0 }

export interface Plan extends Trouble {
  /** Marks records and keys of this run. */
  readonly run: string
  readonly seconds: number
  readonly clients: number
  readonly records: number
  readonly seed: number
  readonly kills: number
  /** Updates that must succeed, and as many that must conflict. */
  readonly atLeast: number
  /** Whether the records are to be removed at the end. */
  readonly cleansUp: boolean
}

export interface Result {
  readonly journal: Journal
  readonly table: Table
  readonly violations: readonly Violation[]
  /** Undefined if the service has none. */
  readonly feedChanges: number | undefined
  readonly kills: number
  readonly dropped: number
  readonly duplicates: number
  readonly seconds: number
}

/** Who shows how far a run is. */
export interface Watcher {
  /** The service is there, and lets us in. */
  onOpen(): void
  /** How long it has run, and how many updates have succeeded. */
  onTick(seconds: number, updates: number): void
}

export async function prove(
  adapter: Adapter,
  places: readonly Place[],
  nodes: Nodes | undefined,
  plan: Plan,
  watcher: Watcher,
): Promise<Result> {
  const connection = new Connection()
  const journal = new Journal()
  const clock = new Clock(plan.seconds, () => isEnough(plan, journal, nodes))
  const ground: Ground = {
    ...{ adapter, connection, places, journal },
    pause: async (milliseconds) => sleep(Math.min(milliseconds, Math.max(TICK_MS, clock.leftMs))),
  }
  const judge = new Caller(
    { ...ground, pause: async (milliseconds) => sleep(Math.min(milliseconds, LONGEST_PAUSE_MS)) },
    ...(['judge', new Random(plan.seed), UNTROUBLED, plan.run] as const),
  )
  const [place] = places
  if (!place) throw new Error('there is no node')
  try {
    await open(adapter, connection, place)
    watcher.onOpen()
    const feed = new FeedReader(ground)
    feed.start()
    const callers = await work(ground, judge, plan, nodes, clock, watcher)
    const { seconds } = clock
    const settled = await settle(judge, journal)
    const table = new Map([...settled, ...(await strays(adapter, connection.to(place), journal))])
    const fromFeed = await feed.finish(table, journal.records)
    const violations = [...check({ operations: journal.operations, table }), ...fromFeed]
    const sum = (of: (caller: Caller) => number) => callers.reduce((all, caller) => all + of(caller), 0)
    const result = {
      ...{ journal, table, violations, seconds, kills: nodes?.kills ?? 0 },
      feedChanges: feed.isThere ? feed.count : undefined,
      dropped: sum(({ dropped }) => dropped),
      duplicates: sum(({ repeated }) => repeated),
    }
    if (plan.cleansUp) await cleanUp(ground, table)
    await adapter.close?.(connection.to(place))
    return result
  } finally {
    connection.close()
  }
}

async function open(adapter: Adapter, connection: Connection, place: Place): Promise<void> {
  try {
    await adapter.open?.(connection.to(place))
  } catch (error) {
    if (!(error instanceof NotSent) && !(error instanceof Lost)) throw error
    throw new ConfigError('Nothing was proved', [`nobody answers at ${place.url}: ${error.message}`])
  }
}

async function work(
  ground: Ground,
  judge: Caller,
  plan: Plan,
  nodes: Nodes | undefined,
  clock: Clock,
  watcher: Watcher,
): Promise<readonly Caller[]> {
  const slots = await Promise.all(Array.from({ length: plan.records }, () => newSlot(judge)))
  clock.start()
  const timer = setInterval(() => {
    watcher.onTick(clock.seconds, ground.journal.count('update', 'ok'))
  }, TICK_MS)
  const isOver = () => clock.isOver
  const callers = Array.from({ length: plan.clients }, (_, index) => {
    const random = new Random(plan.seed + 1 + index)
    return { caller: new Caller(ground, `c${index}`, random, plan, plan.run), random }
  })
  try {
    await Promise.all([
      ...callers.map(({ caller, random }) => keepEditing(caller, random, slots, isOver)),
      ...(nodes ? [keepKilling(nodes, plan, clock)] : []),
    ])
  } finally {
    clock.stop()
    clearInterval(timer)
  }
  return callers.map(({ caller }) => caller)
}

function isEnough({ atLeast, kills }: Plan, journal: Journal, nodes: Nodes | undefined): boolean {
  const fewest = Math.min(journal.count('update', 'ok'), journal.count('update', 'conflict'))
  return fewest >= atLeast && (nodes?.kills ?? kills) >= kills
}

/** Spread over the run; one node after the other. */
async function keepKilling(nodes: Nodes, { kills, seconds }: Plan, clock: Clock): Promise<void> {
  for (let done = 0; done < kills && !clock.isOver;) {
    await sleep(TICK_MS / 4)
    if (clock.seconds < ((done + 1) * seconds) / (kills + 1)) continue
    await nodes.kill(done++ % nodes.places.length)
  }
}

/** How long the run goes: its time, and then until enough was seen. */
class Clock {
  #startedMs: number | undefined
  #isStopped = false

  constructor(
    private readonly planned: number,
    private readonly isEnough: () => boolean,
  ) {}

  start(): void {
    this.#startedMs = performance.now()
  }

  stop(): void {
    this.#isStopped = true
  }

  get seconds(): number {
    return this.#startedMs === undefined ? 0 : (performance.now() - this.#startedMs) / 1000
  }

  get leftMs(): number {
    return Math.max(0, this.planned - this.seconds) * 1000
  }

  get isOver(): boolean {
    if (this.#isStopped) return true
    return (
      this.seconds >=
      (this.isEnough() ? this.planned : Math.max(this.planned * PATIENCE.times, PATIENCE.seconds))
    )
  }
}
