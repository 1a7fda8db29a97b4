// Clients that edit the same records over lost connections and kills of the service. The journal and the checks of `verso prove` decide whether
// an edit was lost or doubled.
import {
  connect,
  ConflictError,
  NetworkError,
  TimeoutError,
  type ModelClient,
  type WireRecord,
} from 'verso-records/client'
import type { ObservedState } from '../../../src/cli/prove/adapters/adapter.js'
import { FeedReplay } from '../../../src/cli/prove/checks/feed-replay.js'
import { checkHistory } from '../../../src/cli/prove/checks/history-check.js'
import type { ClientOperation, OperationOutcome } from '../../../src/cli/prove/checks/operation.js'
import { Journal } from '../../../src/cli/prove/run/journal.js'
import { SeededRandom } from '../../../src/cli/prove/run/random.js'
import { startServerProcess } from '../../faults/server-process.js'
import { PASSWORD, preparedLocation, USERNAME, type Engine } from '../../targets.js'
import { startFaultyProxy, type Fault, type ProxiedRequest } from './faulty-proxy.js'

const CONTACT = 'crm.Contact'
const CLIENTS = 8
const RECORDS = 6
const SHARE_OF_CREATES = 0.03
const SHARE_OF_TOTALS = 0.02
const FEED_TIMEOUT_MS = 60_000
const OPTIONS = { retries: 1_000, timeout: 60_000 }

export interface EditRun {
  readonly edits: number
  readonly kills: number
  readonly seed: number
  /** How many of the requests lose their connection: 1 means all. */
  readonly shareOfFaults: number
  /** A mutant of the client. */
  readonly fetch?: typeof fetch
}

export interface EditResult {
  readonly violations: readonly string[]
  readonly edits: number
  readonly conflicts: number
  readonly faults: number
  readonly kills: number
  readonly followed: number
}

type Contacts = ModelClient
type Details = Pick<ClientOperation, 'kind'> & Partial<ClientOperation>

export async function runEdits(engine: Engine, run: EditRun): Promise<EditResult> {
  const location = await preparedLocation(engine)
  let server = await startServerProcess(location.url)
  const proxy = await startFaultyProxy(server.url)
  const stop = new AbortController()
  try {
    const journal = new Journal()
    const faults = new FaultChooser(new SeededRandom(run.seed), run.shareOfFaults)
    const open = () => {
      const options = run.fetch ? { ...OPTIONS, fetch: run.fetch } : OPTIONS
      return connect(proxy.url, { username: USERNAME, password: PASSWORD }, options).model(CONTACT)
    }
    const follower = open()
    const replay = new FeedReplay()
    const following = replayChanges(follower, replay, (await follower.find({ limit: 0 })).seq, stop.signal)
    const first = new Editor(open(), journal, 'c0', new SeededRandom(run.seed))
    const records = await Promise.all(Array.from({ length: RECORDS }, () => first.create()))
    proxy.choose = (request) => faults.choose(request)
    const isOver = () => journal.count('update', 'ok') >= run.edits
    const editing = Promise.all(
      Array.from({ length: CLIENTS }, async (_, index) => {
        const random = new SeededRandom(run.seed + 1 + index)
        const editor = new Editor(open(), journal, `c${index + 1}`, random)
        while (!isOver()) await editor.work(records)
      }),
    )
    let kills = 0
    const restart = async () => {
      await server.kill()
      server = await startServerProcess(location.url)
      proxy.target = server.url
      kills++
    }
    for (; kills < run.kills;) {
      await waitUntil(
        () => isOver() || journal.count('update', 'ok') >= ((kills + 1) * run.edits) / (run.kills + 1),
      )
      if (isOver()) break
      await restart()
    }
    await editing
    proxy.choose = () => undefined
    // After one more kill nothing is on its way any more, and all that was acknowledged must be stored.
    if (run.kills > 0) await restart()
    const table = await readTable(server.url)
    await waitUntil(() => replay.isComplete(table), FEED_TIMEOUT_MS)
    stop.abort()
    await following
    const violations = [
      ...checkHistory({ operations: journal.operations, table }),
      ...replay.finish(table, journal.records),
    ]
    return {
      violations: violations.map(({ rule, message }) => `${rule}: ${message}`),
      edits: journal.count('update', 'ok'),
      conflicts: journal.count('update', 'conflict'),
      faults: faults.count,
      kills,
      followed: replay.count,
    }
  } finally {
    stop.abort()
    await proxy.close()
    await server.kill()
    location.remove()
  }
}

/** One client at work. Each value that it sends is a token of its own in the journal. */
class Editor {
  constructor(
    private readonly contacts: Contacts,
    private readonly journal: Journal,
    private readonly name: string,
    private readonly random: SeededRandom,
  ) {}

  async work(records: readonly number[]): Promise<void> {
    const chance = this.random.next()
    if (chance < SHARE_OF_TOTALS) await this.#countRecords()
    else if (chance < SHARE_OF_TOTALS + SHARE_OF_CREATES) await this.#createAndRemove()
    else await this.edit(records[this.random.below(records.length)] ?? 0)
  }

  async create(): Promise<number> {
    const created = await this.#record({ kind: 'create' }, this.contacts.create({ phones: [] }))
    return created?.id ?? 0
  }

  /** Appends a token. Half of the edits run their function again after a conflict, the others answer it. */
  async edit(id: number): Promise<void> {
    let attempt: (Details & { readonly invokedMs: number }) | undefined
    const append = (record: WireRecord) => {
      // A function that runs again, or a conflict to answer, means that the attempt before was rejected.
      if (attempt) this.#add(attempt, 'conflict')
      const token = this.journal.nextToken(this.name)
      const { version: named } = record
      attempt = { kind: 'update', record: String(id), token, named, invokedMs: performance.now() }
      return { phones: [...(record['phones'] as string[]), token] }
    }
    const onConflict = this.random.chance(0.5)
      ? ('retry' as const)
      : ({ theirs }: { readonly theirs: WireRecord }) => append(theirs)
    const updated = this.contacts.update(id, append, { onConflict })
    try {
      const record = await updated
      if (attempt) this.#add(attempt, 'ok', toState(record))
    } catch (error) {
      if (attempt) this.#add(attempt, ...describeFailure(error))
    }
  }

  async #createAndRemove(): Promise<void> {
    const id = await this.create()
    if (this.random.chance(0.5)) return
    const details = { kind: 'remove', record: String(id), named: 0 } as const
    await this.#record(details, this.contacts.remove(id, { version: 0 }))
  }

  async #countRecords(): Promise<void> {
    const invokedMs = performance.now()
    const { total } = await this.contacts.find({ limit: 0 })
    this.#add({ kind: 'total', invokedMs }, 'ok', { total })
  }

  async #record(details: Details, call: Promise<unknown>): Promise<WireRecord | undefined> {
    const begun = { ...details, invokedMs: performance.now() }
    try {
      const record = (await call) as WireRecord | undefined
      this.#add(begun, 'ok', record ? { record: String(record.id), ...toState(record) } : {})
      return record
    } catch (error) {
      this.#add(begun, ...describeFailure(error))
      return undefined
    }
  }

  #add(
    details: Details & { readonly invokedMs: number },
    outcome: OperationOutcome,
    more: Partial<ClientOperation> = {},
  ): void {
    this.journal.add({ client: this.name, ...details, answeredMs: performance.now(), outcome, ...more })
  }
}

function toState(record: WireRecord): ObservedState {
  return { version: record.version, tokens: record['phones'] as string[] }
}

function describeFailure(error: unknown): [OperationOutcome, Partial<ClientOperation>] {
  if (error instanceof ConflictError) return ['conflict', {}]
  if (error instanceof NetworkError || error instanceof TimeoutError) return ['unknown', {}]
  return ['unexpected', { message: String(error) }]
}

async function replayChanges(
  contacts: Contacts,
  replay: FeedReplay,
  since: number,
  signal: AbortSignal,
): Promise<void> {
  for await (const { seq, id, version, action, changes } of contacts.follow({ since, signal })) {
    const { before, after } = changes['phones'] ?? {}
    const tokens = { before: toTokens(before), after: toTokens(after) }
    replay.add({ seq, id: String(id), version, action, ...tokens })
  }
}

function toTokens(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? (value as string[]) : undefined
}

async function readTable(url: string): Promise<ReadonlyMap<string, ObservedState>> {
  const contacts = connect(url, { username: USERNAME, password: PASSWORD }).model(CONTACT)
  const table = new Map<string, ObservedState>()
  for await (const record of contacts.all({ fields: ['phones'] }))
    table.set(String(record.id), toState(record))
  return table
}

/** Chooses faults by chance. A stream may lose its connection, but it has no end to wait for. */
class FaultChooser {
  count = 0

  constructor(
    private readonly random: SeededRandom,
    private readonly share: number,
  ) {}

  choose({ path }: ProxiedRequest): Fault | undefined {
    if (!this.random.chance(this.share)) return undefined
    this.count++
    if (path.startsWith('/ws/changes')) return 'lose-request'
    return (['lose-request', 'lose-response', 'cut-response'] as const)[this.random.below(3)]
  }
}

async function waitUntil(isTrue: () => boolean, timeoutMs = Infinity): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!isTrue() && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, 5))
}
