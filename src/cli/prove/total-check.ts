// A total is right if at some moment of the call there were so many records. When a create or a removal took effect is known only
// to lie between its request and its answer: at each moment there is a least and a most.
import type { ObservedState } from './adapter.js'
import type { ClientOperation } from './journal.js'
import type { Violation } from './violation.js'

/** When it may have happened at the earliest, and when it had at the latest. */
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
    ...creates.map(({ latestMs }) => ({ atMs: latestMs, by: 1 })),
    ...removals.map(({ earliestMs }) => ({ atMs: earliestMs, by: -1 })),
  ])
  const upperBound = new StepFunction([
    ...creates.map(({ earliestMs }) => ({ atMs: earliestMs, by: 1 })),
    ...removals.map(({ latestMs }) => ({ atMs: latestMs, by: -1 })),
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
      { rule: 'total' as const, message: `${client} was told a total of ${total}: there were ${range}` },
    ]
  })
}

/** A create without an answer may have happened at any time, or never. */
function findCreateIntervals(operations: readonly ClientOperation[]): TimeInterval[] {
  const intervals = new Map<string, TimeInterval>()
  for (const [index, { kind, outcome, key = `${index}`, invokedMs, answeredMs }] of operations.entries()) {
    if (kind !== 'create' || (outcome !== 'ok' && outcome !== 'unknown')) continue
    intervals.set(key, mergeInterval(intervals.get(key), invokedMs, outcome === 'ok' ? answeredMs : Infinity))
  }
  return [...intervals.values()]
}

/** Of a record that is there at the end, no removal happened. */
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

function mergeInterval(known: TimeInterval | undefined, earliestMs: number, latestMs: number): TimeInterval {
  return {
    earliestMs: Math.min(known?.earliestMs ?? Infinity, earliestMs),
    latestMs: Math.min(known?.latestMs ?? Infinity, latestMs),
  }
}

/** A number that goes up and down, and its least and greatest value in any stretch of time. */
class StepFunction {
  readonly #times: number[]
  /** Level n has the extremes of 2^n values from each one on. */
  readonly #levels: (readonly [number, number])[][] = []

  constructor(steps: readonly { readonly atMs: number; readonly by: number }[]) {
    const sorted = steps.filter(({ atMs }) => atMs < Infinity).sort((a, b) => a.atMs - b.atMs || a.by - b.by)
    this.#times = [-Infinity, ...sorted.map(({ atMs }) => atMs)]
    let value = 0
    let level = [[0, 0] as const, ...sorted.map(({ by }) => [(value += by), value] as const)]
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
