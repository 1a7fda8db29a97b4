// Compares what clients were answered with what is stored. It reads the feed and the records over HTTP, and nothing else.
import type { RecordedWrite } from './recorder.js'
import { MODEL } from './recorder.js'
import type { HttpTarget } from './service-process.js'

const PAGE = 500

export interface FeedChange {
  readonly seq: number
  readonly id: number
  readonly version: number
  readonly action: string
  readonly changes: Readonly<Record<string, { readonly before: unknown; readonly after: unknown }>>
}

export interface StoredItem {
  readonly id: number
  readonly version: number
  readonly token: string
  readonly log: readonly string[]
  readonly note: string | null
}

export interface StoredState {
  readonly changes: readonly FeedChange[]
  readonly items: readonly StoredItem[]
  readonly total: number
}

export async function readStoredState(target: HttpTarget): Promise<StoredState> {
  const changes: FeedChange[] = []
  for (let since = 0; ;) {
    const page = (await readPage(
      target,
      `/ws/changes?since=${since}&limit=${PAGE}&model=${MODEL}`,
    )) as DataPage<FeedChange>
    changes.push(...page.data)
    if (page.data.length === 0) break
    since = page.data.at(-1)?.seq ?? since
  }
  const items: StoredItem[] = []
  for (let offset = 0; ; offset += PAGE) {
    const page = (await readPage(
      target,
      `/ws/rest/${MODEL}?limit=${PAGE}&offset=${offset}&fields=token,log,note`,
    )) as DataPage<StoredItem>
    items.push(...page.data)
    if (page.data.length === 0) return { changes, items, total: page.total ?? 0 }
  }
}

interface DataPage<T> {
  readonly data: readonly T[]
  readonly total?: number
}

async function readPage(target: HttpTarget, path: string): Promise<unknown> {
  const { status, body } = await target.send('GET', path)
  if (status !== 200) throw new Error(`${path} was answered with ${status}`)
  return body
}

/** Returns every difference. No write may be in flight. */
export function findViolations(writes: readonly RecordedWrite[], state: StoredState): string[] {
  const stored = { places: indexTokens(state.changes), deletes: countDeletes(state.changes) }
  return [
    ...findUnorderedChanges(state.changes),
    ...findWrongTable(state),
    ...writes.flatMap((write) => [...compareWrite(write, stored)]),
  ]
}

interface StoredToken {
  readonly id: number
  readonly version: number
}

/** The places of each token in the change log. */
function indexTokens(changes: readonly FeedChange[]): Map<string, StoredToken[]> {
  const places = new Map<string, StoredToken[]>()
  const add = (token: unknown, { id, version }: FeedChange) => {
    if (typeof token === 'string') places.set(token, [...(places.get(token) ?? []), { id, version }])
  }
  for (const change of changes) {
    if (change.action === 'delete') continue
    const { token, log, note } = change.changes
    add(token?.after, change)
    add(note?.after, change)
    const before = new Set((log?.before ?? []) as readonly string[])
    for (const each of (log?.after ?? []) as readonly string[]) if (!before.has(each)) add(each, change)
  }
  return places
}

/** The number of deletes of each record. */
function countDeletes(changes: readonly FeedChange[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const { id, action } of changes) if (action === 'delete') counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

interface StoredWrites {
  readonly places: ReadonlyMap<string, readonly StoredToken[]>
  readonly deletes: ReadonlyMap<number, number>
}

function* compareWrite(
  { kind, tokens, outcome, answered, id }: RecordedWrite,
  stored: StoredWrites,
): Generator<string> {
  if (kind === 'delete') {
    const deletes = stored.deletes.get(id ?? 0) ?? 0
    if (outcome === 'acknowledged' && deletes !== 1)
      yield `the acknowledged delete of ${id ?? '?'} is stored ${deletes} times`
    return
  }
  const counts = tokens.map((token) => stored.places.get(token)?.length ?? 0)
  if (new Set(counts).size > 1) yield `a ${kind} is stored in part: ${tokens.join()}`
  if (counts.some((count) => count > 1)) yield `a ${kind} is stored twice: ${tokens.join()}`
  if (outcome === 'refused' && counts.some((count) => count > 0))
    yield `a refused ${kind} is stored: ${tokens.join()}`
  if (outcome !== 'acknowledged') return
  for (const [index, token] of tokens.entries()) {
    const [place] = stored.places.get(token) ?? []
    const expected = answered[index]
    if (!place) yield `the acknowledged ${kind} ${token} is lost`
    else if (place.id !== expected?.id || place.version !== expected.version)
      yield `${token} was acknowledged as ${expected?.id ?? '?'} at ${expected?.version ?? '?'} and is ${place.id} at ${place.version}`
  }
}

/** Sequence numbers increase, and the versions of each record have no gap. */
function* findUnorderedChanges(changes: readonly FeedChange[]): Generator<string> {
  const versions = new Map<number, number | 'deleted'>()
  let last = 0
  for (const { seq, id, version, action } of changes) {
    if (seq <= last) yield `the feed has ${seq} after ${last}`
    last = seq
    const before = versions.get(id)
    if (before === 'deleted') yield `record ${id} has changes after its delete`
    else if (action !== 'delete' && version !== (before ?? -1) + 1)
      yield `record ${id} has version ${version} after ${before ?? 'nothing'}`
    versions.set(id, action === 'delete' ? 'deleted' : version)
  }
}

/** The table is what the feed says, and the total is the number of its records. */
function* findWrongTable({ changes, items, total }: StoredState): Generator<string> {
  if (total !== items.length) yield `the total is ${total}, and there are ${items.length} records`
  const folded = new Map<number, Record<string, unknown>>()
  for (const { id, version, action, changes: fields } of changes) {
    if (action === 'delete') {
      folded.delete(id)
      continue
    }
    const record: Record<string, unknown> = { ...folded.get(id), id, version }
    for (const [name, { before, after }] of Object.entries(fields)) {
      if (JSON.stringify(record[name] ?? null) !== JSON.stringify(before ?? null))
        yield `record ${id} at ${version}: ${name} was not what the change says`
      record[name] = after
    }
    folded.set(id, record)
  }
  const ids = new Set(items.map(({ id }) => id))
  for (const id of folded.keys()) if (!ids.has(id)) yield `record ${id} is in the feed and not in the table`
  for (const { id, version, token, log, note } of items) {
    const record = folded.get(id)
    const shown = (values: unknown) => JSON.stringify(values)
    const expected = [
      record?.['version'],
      record?.['token'],
      record?.['log'] ?? null,
      record?.['note'] ?? null,
    ]
    if (shown(expected) !== shown([version, token, log, note])) yield `record ${id} is not what the feed says`
  }
}

export interface ControlResult {
  readonly caught: number
  readonly tried: number
  readonly missed: readonly string[]
}

/** Breaks what was stored in each of several ways. The checker is blind if it does not find each of them. */
export function runControls(writes: readonly RecordedWrite[], state: StoredState): ControlResult {
  const controls = Object.entries(buildControls(writes, state))
  const sound = findViolations(writes, state).length
  const missed = controls
    .filter(([, broken]) => findViolations(writes, broken).length <= sound)
    .map(([name]) => name)
  return { tried: controls.length, caught: controls.length - missed.length, missed }
}

function buildControls(
  writes: readonly RecordedWrite[],
  state: StoredState,
): Readonly<Record<string, StoredState>> {
  const { changes, items } = state
  const acknowledged = writes.findLast(({ kind, outcome }) => kind === 'update' && outcome === 'acknowledged')
  const [lost] = acknowledged?.tokens ?? []
  const isLost = ({ changes: fields }: FeedChange) =>
    JSON.stringify(fields['log']?.after ?? '').includes(`"${lost ?? ''}"`)
  const refused = writes.find(({ kind, outcome }) => kind === 'update' && outcome === 'refused')
  const [first] = changes
  const addition = refused &&
    first && {
      ...first,
      seq: (changes.at(-1)?.seq ?? 0) + 1,
      id: 1_000_000_000,
      version: 0,
      action: 'create',
      changes: { token: { before: null, after: refused.tokens[0] } },
    }
  return {
    'a lost acknowledged write': { ...state, changes: changes.filter((change) => !isLost(change)) },
    'a change that is missing in the feed': {
      ...state,
      changes: changes.filter((_, index) => index !== changes.length >> 1),
    },
    'two changes in the wrong order': { ...state, changes: [...changes.slice(1), ...changes.slice(0, 1)] },
    'a record that is missing in the table': { ...state, items: items.slice(1), total: items.length - 1 },
    'a wrong total': { ...state, total: state.total + 1 },
    'a record with another value': {
      ...state,
      items: items.map((item, index) => (index === 0 ? { ...item, note: 'another' } : item)),
    },
    ...(addition ? { 'a refused write that is stored': { ...state, changes: [...changes, addition] } } : {}),
  }
}
