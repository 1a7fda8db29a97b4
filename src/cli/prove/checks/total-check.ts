// Checks totals. A create or a removal took effect between its request and its response, so the number of records has a
// lower and an upper bound at any time. A total is right if it lies between the bounds at some time during the call.
import type { ObservedState } from '../adapters/adapter.js'
import type { ClientOperation } from './operation.js'
import type { Violation } from './violation.js'

/** The write took effect between these times. */
interface TimeInterval {
  readonly earliestMs: number
  readonly latestMs: number
}

export function checkTotals(
  operations: readonly ClientOperation[],
  table: ReadonlyMap<string, ObservedState>,
): Violation[] {
  const [creates, removals] = [findCreateIntervals(operations), findRemovalIntervals(operations, table)]
  const lowerBound = new StepFunction([
    ...creates.map(({ latestMs }) => ({ atMs: latestMs, delta: 1 })),
    ...removals.map(({ earliestMs }) => ({ atMs: earliestMs, delta: -1 })),
  ])
  const upperBound = new StepFunction([
    ...creates.map(({ earliestMs }) => ({ atMs: earliestMs, delta: 1 })),
    ...removals.map(({ latestMs }) => ({ atMs: latestMs, delta: -1 })),
  ])
  return operations.flatMap(({ kind, outcome, total, invokedMs, answeredMs, client }) => {
    if (kind !== 'total' || outcome !== 'ok' || total === undefined) return []
    const [low, high] = [
      lowerBound.findExtremes(invokedMs, answeredMs)[0],
      upperBound.findExtremes(invokedMs, answeredMs)[1],
    ]
    if (total >= low && total <= high) return []
    const range = low === high ? `${low}` : `${low} to ${high}`
    return [
      {
        rule: 'total' as const,
        message: `${client} got a total of ${total}, but there were ${range} records`,
      },
    ]
  })
}

/** A create without a response may have taken effect at any later time, or never. */
function findCreateIntervals(operations: readonly ClientOperation[]): TimeInterval[] {
  const intervals = new Map<string, TimeInterval>()
  for (const [index, { kind, outcome, key = `${index}`, invokedMs, answeredMs }] of operations.entries()) {
    if (kind !== 'create' || (outcome !== 'ok' && outcome !== 'unknown')) continue
    intervals.set(key, mergeInterval(intervals.get(key), invokedMs, outcome === 'ok' ? answeredMs : Infinity))
  }
  return [...intervals.values()]
}

/** No removal of a record that exists at the end took effect. */
function findRemovalIntervals(
  operations: readonly ClientOperation[],
  table: ReadonlyMap<string, ObservedState>,
): TimeInterval[] {
  const intervals = new Map<string, TimeInterval>()
  for (const { kind, outcome, record = '', invokedMs, answeredMs } of operations) {
    if (kind !== 'remove' || (outcome !== 'ok' && outcome !== 'unknown') || table.has(record)) continue
    intervals.set(
      record,
      mergeInterval(intervals.get(record), invokedMs, outcome === 'ok' ? answeredMs : Infinity),
    )
  }
  return [...intervals.values()]
}

function mergeInterval(
  earlier: TimeInterval | undefined,
  earliestMs: number,
  latestMs: number,
): TimeInterval {
  return {
    earliestMs: Math.min(earlier?.earliestMs ?? Infinity, earliestMs),
    latestMs: Math.min(earlier?.latestMs ?? Infinity, latestMs),
  }
}

/** A step function over time that answers its minimum and maximum in an interval. */
class StepFunction {
  readonly #times: number[]
  /** Sparse table: level n holds the minimum and maximum of 2^n consecutive values. */
  readonly #levels: (readonly [number, number])[][] = []

  constructor(steps: readonly { readonly atMs: number; readonly delta: number }[]) {
    const sorted = steps
      .filter(({ atMs }) => atMs < Infinity)
      .sort((a, b) => a.atMs - b.atMs || a.delta - b.delta)
    this.#times = [-Infinity, ...sorted.map(({ atMs }) => atMs)]
    let value = 0
    let level = [[0, 0] as const, ...sorted.map(({ delta }) => [(value += delta), value] as const)]
    for (let width = 1; level.length > 0; width *= 2) {
      this.#levels.push(level)
      level = level.slice(width).map((right, index) => mergeRanges(level[index], right))
    }
  }

  findExtremes(fromMs: number, toMs: number): readonly [number, number] {
    const first = this.#findLastUntil(fromMs)
    const last = this.#findLastUntil(toMs)
    const depth = 31 - Math.clz32(last - first + 1)
    const level = this.#levels[depth]
    return mergeRanges(level?.[first], level?.[last - 2 ** depth + 1])
  }

  #findLastUntil(atMs: number): number {
    let [low, high] = [0, this.#times.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#times[middle] ?? Infinity) <= atMs) low = middle
      else high = middle - 1
    }
    return low
  }
}

function mergeRanges(
  left: readonly [number, number] = [Infinity, -Infinity],
  right: readonly [number, number] = [Infinity, -Infinity],
): readonly [number, number] {
  return [Math.min(left[0], right[0]), Math.max(left[1], right[1])]
}
