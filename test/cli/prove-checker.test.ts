// `verso prove` is only as good as its checker: it must find every violation, and none in a correct history.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FeedChange, ObservedState } from '../../src/cli/prove/adapters/adapter.js'
import { checkHistory, type RunHistory } from '../../src/cli/prove/checks/history-check.js'
import { FeedReplay } from '../../src/cli/prove/checks/feed-replay.js'
import type { ClientOperation } from '../../src/cli/prove/checks/operation.js'
import { SeededRandom } from '../../src/cli/prove/run/random.js'
import type { ConsistencyRule, Violation } from '../../src/cli/prove/checks/violation.js'
import { rightHistory } from './prove-history.js'

type RuleOfFeed = Extract<ConsistencyRule, `feed-${string}`>
type Said = Partial<ClientOperation> & Pick<ClientOperation, 'kind' | 'outcome'>

const rulesOf = (violations: readonly Violation[]) => violations.map(({ rule }) => rule)

function at(invokedMs: number, said: Said): ClientOperation {
  return { client: 'c0', invokedMs, answeredMs: invokedMs + 1.5, ...said }
}

function state(...tokens: string[]): ObservedState {
  return { version: tokens.length, tokens }
}

const [a, b] = ['a', 'b']
const repeated = { kind: 'update', record: a, token: 't3', named: 2, key: 'k' } as const
const OPERATIONS: Record<string, ClientOperation> = {
  createA: at(0, { kind: 'create', outcome: 'ok', record: a, ...state() }),
  createB: at(2, { kind: 'create', outcome: 'ok', record: b, ...state() }),
  first: at(10, { kind: 'update', outcome: 'ok', record: a, token: 't1', named: 0, ...state('t1') }),
  beaten: at(11, { kind: 'update', outcome: 'conflict', record: a, token: 't2', named: 0 }),
  look: at(14, { kind: 'read', outcome: 'ok', record: a, ...state('t1') }),
  arrived: at(16, { kind: 'update', outcome: 'unknown', record: a, token: 't2b', named: 1 }),
  lookAgain: at(18, { kind: 'read', outcome: 'ok', record: a, ...state('t1', 't2b') }),
  sent: at(20, { ...repeated, outcome: 'ok', ...state('t1', 't2b', 't3') }),
  sentAgain: at(22, { ...repeated, outcome: 'ok', ...state('t1', 't2b', 't3') }),
  never: at(24, { kind: 'update', outcome: 'unknown', record: a, token: 't4', named: 2 }),
  two: at(26, { kind: 'total', outcome: 'ok', total: 2 }),
  removal: at(28, { kind: 'remove', outcome: 'ok', record: b, named: 0 }),
  gone: at(30, { kind: 'read', outcome: 'missing', record: b }),
  one: at(32, { kind: 'total', outcome: 'ok', total: 1 }),
  last: at(34, { kind: 'read', outcome: 'ok', record: a, ...state('t1', 't2b', 't3') }),
}

/** The correct history with some operations changed or added, or with another final state. */
function history(
  changed: Record<string, ClientOperation | undefined> = {},
  end = state('t1', 't2b', 't3'),
): RunHistory {
  const operations = Object.values({ ...OPERATIONS, ...changed }).filter((each) => each !== undefined)
  return { operations, table: new Map([[a, end]]) }
}

const known = (name: string): ClientOperation =>
  OPERATIONS[name] ?? at(0, { kind: 'total', outcome: 'refused' })

const BROKEN: Record<Exclude<ConsistencyRule, RuleOfFeed>, RunHistory> = {
  'lost-update': history({}, state('t1', 't2b')),
  'token-twice': history({}, state('t1', 't2b', 't3', 't3')),
  'unknown-token': history({}, state('t1', 't2b', 't3', 'who')),
  'version-twice': history({
    other: at(21, {
      kind: 'update',
      outcome: 'ok',
      record: a,
      token: 't5',
      named: 2,
      ...state('t1', 't2b', 't5'),
    }),
  }),
  'wrong-version': history({ first: { ...known('first'), version: 2 } }),
  'wrong-base': history({}, state('t1', 't2b', 't3', 't4')),
  'wrong-tokens': history({ lookAgain: { ...known('lookAgain'), tokens: ['t1', 't2'] } }),
  'went-back': history({ last: { ...known('last'), ...state('t1') } }),
  'from-the-future': history({ early: at(5, { kind: 'read', outcome: 'ok', record: a, ...state('t1') }) }),
  'false-conflict': history({
    alone: at(40, { kind: 'update', outcome: 'conflict', record: a, token: 't6', named: 3 }),
  }),
  'refused-but-there': history({ arrived: { ...known('arrived'), outcome: 'refused' } }),
  duplicate: history({ sentAgain: at(22, { ...repeated, outcome: 'conflict' }) }),
  'final-version': history({}, { ...state('t1', 't2b', 't3'), version: 4 }),
  missing: history({ early: at(5, { kind: 'read', outcome: 'missing', record: a }) }),
  removed: history({ late: at(40, { kind: 'read', outcome: 'ok', record: b, ...state() }) }),
  created: history({ createB: { ...known('createB'), record: a } }),
  total: history({ one: { ...known('one'), total: 2 } }),
  unexpected: history({ odd: at(40, { kind: 'read', outcome: 'unexpected', record: a, message: '500' }) }),
}

describe('the checker', () => {
  test('the checker finds no violation in a correct history', () => {
    expect(checkHistory(history())).toEqual([])
  })

  test.each(Object.entries(BROKEN))('the checker reports a history that violates %s', (rule, broken) => {
    expect(rulesOf(checkHistory(broken))).toContain(rule)
  })

  test('the checker reports wrong repeats, removals, conflicts before their cause, and unknown records', () => {
    const more: [ConsistencyRule, RunHistory][] = [
      ['duplicate', history({ sentAgain: { ...known('sentAgain'), version: 4 } })],
      ['duplicate', history({ x: { ...known('createA'), key: 'c' }, y: { ...known('createB'), key: 'c' } })],
      ['removed', history({ again: { ...known('removal'), invokedMs: 40 } })],
      [
        'removed',
        {
          ...history(),
          table: new Map([
            [a, state('t1', 't2b', 't3')],
            [b, state()],
          ]),
        },
      ],
      ['missing', history({ removal: undefined, one: undefined })],
      [
        'created',
        {
          ...history(),
          table: new Map([
            [a, state('t1', 't2b', 't3')],
            ['c', state()],
          ]),
        },
      ],
      // The conflict was answered at 8.5, but the winning update was sent at 10.
      ['false-conflict', history({ beaten: { ...known('beaten'), invokedMs: 7, answeredMs: 8.5 } })],
      ['total', history({ two: { ...known('two'), total: 3 } })],
    ]
    for (const [rule, broken] of more) expect(rulesOf(checkHistory(broken))).toContain(rule)
  })

  test('a total may match any instant of its call, with or without operations of unknown outcome', () => {
    const during = at(27.5, { kind: 'total', outcome: 'ok', total: 0, answeredMs: 31 })
    const lost = at(25, { kind: 'create', outcome: 'unknown' })
    expect(rulesOf(checkHistory(history({ during })))).toEqual(['total'])
    for (const total of [1, 2]) expect(checkHistory(history({ during: { ...during, total } }))).toEqual([])
    expect(checkHistory(history({ lost, one: { ...known('one'), total: 2 } }))).toEqual([])
    expect(checkHistory(history({ lost }))).toEqual([])
  })
})

const STEPS = 200

test('the checker accepts random correct histories', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0 }), (seed) => {
      expect(checkHistory(rightHistory(seed, STEPS))).toEqual([])
    }),
    { numRuns: 200 },
  )
})

type Corruption = (history: RunHistory, random: SeededRandom) => RunHistory | undefined

function pick<T>(random: SeededRandom, all: readonly T[]): T | undefined {
  return all[random.below(all.length)]
}

/** Replaces one of the operations that fit; undefined if none does. */
function replacing(
  fits: (operation: ClientOperation, history: RunHistory) => boolean,
  change: (operation: ClientOperation) => Partial<ClientOperation>,
): Corruption {
  return (history, random) => {
    const chosen = pick(
      random,
      history.operations.filter((each) => fits(each, history)),
    )
    if (!chosen) return undefined
    const operations = history.operations.map((each) =>
      each === chosen ? { ...each, ...change(each) } : each,
    )
    return { ...history, operations }
  }
}

/** Replaces the final state of a record with at least `least` tokens. */
function ending(least: number, change: (tokens: string[], random: SeededRandom) => string[]): Corruption {
  return (history, random) => {
    const chosen = pick(
      random,
      [...history.table].filter(([, { tokens }]) => tokens.length >= least),
    )
    if (!chosen) return undefined
    const tokens = change([...chosen[1].tokens], random)
    return { ...history, table: new Map(history.table).set(chosen[0], { version: tokens.length, tokens }) }
  }
}

const isUpdate = (outcome: ClientOperation['outcome']) => (each: ClientOperation) =>
  each.kind === 'update' && each.outcome === outcome && each.key === undefined

const CORRUPTIONS: Record<string, Corruption> = {
  'the last update is lost': (history, random) => {
    const acknowledged = new Set(history.operations.filter(isUpdate('ok')).map(({ token }) => token))
    const fits = [...history.table].filter(([, { tokens }]) => acknowledged.has(tokens.at(-1)))
    const chosen = pick(random, fits)
    if (!chosen) return undefined
    const tokens = chosen[1].tokens.slice(0, -1)
    return { ...history, table: new Map(history.table).set(chosen[0], { version: tokens.length, tokens }) }
  },
  'an update in between is lost': ending(2, (tokens, random) =>
    tokens.toSpliced(random.below(tokens.length - 1), 1),
  ),
  'a token is there twice': ending(1, (tokens, random) => [
    ...tokens,
    tokens[random.below(tokens.length)] ?? '',
  ]),
  'two updates changed places': ending(2, (tokens) => [
    ...tokens.slice(0, -2),
    ...tokens.slice(-2).reverse(),
  ]),
  'a token of nobody': ending(0, (tokens) => [...tokens, 'nobody']),
  'a record is gone': (history, random) => {
    const table = new Map(history.table)
    const removed = new Set(
      history.operations.flatMap((each) => (each.kind === 'remove' ? [each.record] : [])),
    )
    const chosen = pick(
      random,
      [...table.keys()].filter((record) => !removed.has(record)),
    )
    return chosen !== undefined && table.delete(chosen) ? { ...history, table } : undefined
  },
  'another version is answered': replacing(isUpdate('ok'), ({ version = 0 }) => ({ version: version + 1 })),
  'a conflict is acknowledged': replacing(isUpdate('conflict'), ({ named = 0 }) => ({
    ...{ outcome: 'ok', version: named + 1 },
  })),
  'a success is told of a conflict': replacing(
    (each, { table }) =>
      isUpdate('ok')(each) && table.get(each.record ?? '')?.tokens.includes(each.token ?? '') === true,
    () => ({ outcome: 'conflict', version: undefined, tokens: undefined }),
  ),
  'a read is stale': replacing(
    (each, { operations }) =>
      each.kind === 'read' &&
      each.outcome === 'ok' &&
      (each.version ?? 0) > 0 &&
      operations.some(
        ({ record, outcome, version = 0, answeredMs }) =>
          record === each.record &&
          outcome === 'ok' &&
          version >= (each.version ?? 0) &&
          answeredMs < each.invokedMs,
      ),
    ({ tokens = [] }) => state(...tokens.slice(0, -1)),
  ),
  'a total is too high': replacing(
    ({ kind }) => kind === 'total',
    ({ total = 0 }) => ({ total: total + 2 * CLIENTS_AT_ONCE }),
  ),
  'a total is too low': replacing(
    ({ kind }) => kind === 'total',
    () => ({ total: -1 }),
  ),
  'a strange answer': replacing(
    () => true,
    () => ({ outcome: 'unexpected' }),
  ),
}
/** At most this many records can be created or removed during one call. */
const CLIENTS_AT_ONCE = 6

test.each(Object.entries(CORRUPTIONS))(
  'the checker reports random histories with one corruption: %s',
  (_, corrupt) => {
    let caught = 0
    fc.assert(
      fc.property(fc.integer({ min: 0 }), (seed) => {
        const corrupted = corrupt(rightHistory(seed, STEPS), new SeededRandom(seed))
        if (!corrupted) return
        caught++
        expect(checkHistory(corrupted).length).toBeGreaterThan(0)
      }),
      { numRuns: 60 },
    )
    expect(caught).toBeGreaterThan(20)
  },
)

describe('the change feed, folded', () => {
  const change = (
    seq: number,
    version: number,
    action: FeedChange['action'],
    ...after: string[]
  ): FeedChange => ({
    ...{ seq, id: a, version, action, after, before: after.slice(0, -1) },
  })
  const RIGHT = [change(3, 0, 'create'), change(5, 1, 'update', 't1'), change(9, 2, 'update', 't1', 't2')]
  const TABLE = new Map([[a, state('t1', 't2')]])
  const fold = (changes: readonly FeedChange[], table: ReadonlyMap<string, ObservedState> = TABLE) => {
    const folded = new FeedReplay()
    for (const each of changes) folded.add(each)
    return rulesOf(folded.finish(table, new Set([a])))
  }
  const [made, first, second] = RIGHT as [FeedChange, FeedChange, FeedChange]

  test('a correct feed folds to the final table', () => {
    expect(fold(RIGHT)).toEqual([])
    expect(
      fold([...RIGHT, { ...change(10, 3, 'delete'), before: ['t1', 't2'], after: undefined }], new Map()),
    ).toEqual([])
  })

  test('a feed may contain changes of records that existed before the run', () => {
    expect(fold([{ ...first, id: 'z', seq: 1, version: 7 }, ...RIGHT])).toEqual([])
  })

  test.each<[string, RuleOfFeed, FeedChange[]]>([
    ['a repeated change', 'feed-order', [made, first, first, second]],
    ['a decreasing sequence number', 'feed-order', [made, first, { ...second, seq: 4 }]],
    ['a missing version', 'feed-gap', [made, second]],
    ['a change with a wrong before value', 'feed-gap', [made, first, { ...second, before: ['t0'] }]],
    ['a change after the delete', 'feed-order', [made, first, change(6, 2, 'delete'), second]],
    ['a missing last change', 'feed-table', [made, first]],
    ['wrong tokens', 'feed-table', [made, first, { ...second, after: ['t1', 't3'] }]],
    ['no changes', 'feed-table', []],
  ])('the feed check reports %s', (_, rule, changes) => {
    expect(fold(changes)).toContain(rule)
  })

  test('the feed check reports a missing delete', () => {
    expect(fold(RIGHT, new Map())).toEqual(['feed-table'])
  })
})
