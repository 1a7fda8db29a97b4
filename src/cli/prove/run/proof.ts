// Runs one proof: clients, feed reader and kills side by side; then reads the final state and checks the history.
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../../errors.js'
import { NOTHING_TESTED, ResponseLostError, NotSentError, type Adapter } from '../adapters/adapter.js'
import { ProveClient, type ClientContext, type FaultInjection } from './prove-client.js'
import { checkHistory } from '../checks/history-check.js'
import { editUntilOver, createSlot } from './editing.js'
import { HttpConnectionPool, type NodeAddress } from './connection.js'
import { FeedReader } from './feed-reader.js'
import { Journal } from './journal.js'
import { removeRecords, readFinalTable, findUnacknowledgedRecords, type FinalTable } from './final-table.js'
import type { NodeCluster } from './node-cluster.js'
import { SeededRandom } from './random.js'
import type { Violation } from '../checks/violation.js'

const MAX_OBSERVER_PAUSE_MS = 60_000
/**
 * A run that has not seen enough continues for at most this multiple of its time, or this many seconds if that is
 * longer.
 */
const MAX_EXTENSION = { times: 3, seconds: 90 }
const PROGRESS_INTERVAL_MS = 200
const NO_FAULT_INJECTION: FaultInjection = { drop: 0, keyed: 1, duplicates: 0 }

export interface ProvePlan extends FaultInjection {
  /** Value that marks the records and keys of this run. */
  readonly run: string
  readonly seconds: number
  readonly clients: number
  readonly records: number
  readonly seed: number
  readonly kills: number
  /** Minimum number of successful updates, and of conflicts. */
  readonly atLeast: number
  /** Removes the records at the end of the run. */
  readonly removesRecords: boolean
}

export interface ProveResult {
  readonly journal: Journal
  readonly table: FinalTable
  readonly violations: readonly Violation[]
  /** Undefined if the service has no feed. */
  readonly feedChanges: number | undefined
  readonly kills: number
  readonly dropped: number
  readonly duplicates: number
  readonly seconds: number
}

/** Receives the progress of a run. */
export interface ProveListener {
  /** Called when the adapter is open and logged in. */
  onOpen(): void
  /** Called with the elapsed time and the number of successful updates. */
  onTick(seconds: number, updates: number): void
}

/** Service under test. */
export interface ProvedService {
  readonly adapter: Adapter
  readonly addresses: readonly NodeAddress[]
  /** Undefined if prove cannot kill the nodes. */
  readonly nodes?: NodeCluster
}

/** Everything that the parts of one run share. */
interface ProveRun {
  readonly plan: ProvePlan
  readonly nodes: NodeCluster | undefined
  readonly clock: RunClock
  readonly context: ClientContext
  readonly listener: ProveListener
}

export async function prove(
  { adapter, addresses, nodes }: ProvedService,
  plan: ProvePlan,
  listener: ProveListener,
): Promise<ProveResult> {
  const connections = new HttpConnectionPool()
  const journal = new Journal()
  const clock = new RunClock(plan.seconds, () => hasSeenEnough(plan, journal, nodes))
  const context: ClientContext = {
    run: plan.run,
    adapter,
    connections,
    addresses,
    journal,
    pause: async (milliseconds) =>
      sleep(Math.min(milliseconds, Math.max(PROGRESS_INTERVAL_MS, clock.leftMs))),
  }
  const observer = createObserver(context, plan.seed)
  const [address] = addresses
  if (!address) throw new Error('no node address is configured')
  try {
    await openAdapter(adapter, connections, address)
    listener.onOpen()
    const feed = new FeedReader(context)
    feed.start()
    const clients = await runClients({ plan, nodes, clock, context, listener }, observer)
    const { seconds } = clock
    const settled = await readFinalTable(observer, journal)
    const table = new Map([
      ...settled,
      ...(await findUnacknowledgedRecords(adapter, connections.sendTo(address), journal)),
    ])
    const fromFeed = await feed.finish(table, journal.records)
    const violations = [...checkHistory({ operations: journal.operations, table }), ...fromFeed]
    const result: ProveResult = {
      journal,
      table,
      violations,
      seconds,
      kills: nodes?.kills ?? 0,
      feedChanges: feed.hasFeed ? feed.count : undefined,
      dropped: sum(clients.map(({ dropped }) => dropped)),
      duplicates: sum(clients.map(({ repeated }) => repeated)),
    }
    if (plan.removesRecords) await removeRecords(context, table)
    await adapter.close?.(connections.sendTo(address))
    return result
  } finally {
    connections.close()
  }
}

/** Creates the client that makes the first records and reads the final state. It injects no faults. */
function createObserver(context: ClientContext, seed: number): ProveClient {
  const pause = async (milliseconds: number) => sleep(Math.min(milliseconds, MAX_OBSERVER_PAUSE_MS))
  return new ProveClient({ ...context, pause }, 'judge', new SeededRandom(seed), NO_FAULT_INJECTION)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

async function openAdapter(
  adapter: Adapter,
  connections: HttpConnectionPool,
  address: NodeAddress,
): Promise<void> {
  try {
    await adapter.open?.(connections.sendTo(address))
  } catch (error) {
    if (!(error instanceof NotSentError) && !(error instanceof ResponseLostError)) throw error
    throw new ConfigError(NOTHING_TESTED, [`${address.url} cannot be reached: ${error.message}`])
  }
}

async function runClients(
  { plan, nodes, clock, context, listener }: ProveRun,
  observer: ProveClient,
): Promise<readonly ProveClient[]> {
  const slots = await Promise.all(Array.from({ length: plan.records }, () => createSlot(observer)))
  clock.start()
  const timer = setInterval(() => {
    listener.onTick(clock.seconds, context.journal.count('update', 'ok'))
  }, PROGRESS_INTERVAL_MS)
  const isOver = () => clock.isOver
  const editors = Array.from({ length: plan.clients }, (_, index) => {
    const random = new SeededRandom(plan.seed + 1 + index)
    return { client: new ProveClient(context, `c${index}`, random, plan), random, slots, isOver }
  })
  try {
    await Promise.all([...editors.map(editUntilOver), ...(nodes ? [killNodes(nodes, plan, clock)] : [])])
  } finally {
    clock.stop()
    clearInterval(timer)
  }
  return editors.map(({ client }) => client)
}

function hasSeenEnough(
  { atLeast, kills }: ProvePlan,
  journal: Journal,
  nodes: NodeCluster | undefined,
): boolean {
  const fewest = Math.min(journal.count('update', 'ok'), journal.count('update', 'conflict'))
  return fewest >= atLeast && (nodes?.kills ?? kills) >= kills
}

/** Kills one node after the other, spread over the run. */
async function killNodes(nodes: NodeCluster, { kills, seconds }: ProvePlan, clock: RunClock): Promise<void> {
  for (let done = 0; done < kills && !clock.isOver;) {
    await sleep(PROGRESS_INTERVAL_MS / 4)
    if (clock.seconds < ((done + 1) * seconds) / (kills + 1)) continue
    await nodes.kill(done++ % nodes.addresses.length)
  }
}

/** Measures the run. It ends after its planned time if enough was seen, else later. */
class RunClock {
  #startedMs: number | undefined
  #isStopped = false

  constructor(
    private readonly plannedSeconds: number,
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
    return Math.max(0, this.plannedSeconds - this.seconds) * 1000
  }

  get isOver(): boolean {
    if (this.#isStopped) return true
    return (
      this.seconds >=
      (this.isEnough()
        ? this.plannedSeconds
        : Math.max(this.plannedSeconds * MAX_EXTENSION.times, MAX_EXTENSION.seconds))
    )
  }
}
