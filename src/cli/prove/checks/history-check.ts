// Compares the responses that clients got with the final state. Pure: takes a history, returns violations, in O(n log
// n).
import type { ObservedState } from '../adapters/adapter.js'
import type { ClientOperation } from './operation.js'
import { checkRecord } from './record-check.js'
import { checkTotals } from './total-check.js'
import type { Violation } from './violation.js'

export interface RunHistory {
  readonly operations: readonly ClientOperation[]
  /** Final state of each record; removed records are absent. */
  readonly table: ReadonlyMap<string, ObservedState>
}

export function checkHistory({ operations, table }: RunHistory): Violation[] {
  const byRecord = new Map<string, ClientOperation[]>()
  for (const operation of operations) {
    if (operation.record === undefined) continue
    const known = byRecord.get(operation.record)
    if (known) known.push(operation)
    else byRecord.set(operation.record, [operation])
  }
  return [
    ...findUnexpected(operations),
    ...checkCreates(operations, table),
    ...[...byRecord].flatMap(([record, all]) => [...checkRecord(record, all, table.get(record))]),
    ...checkTotals(operations, table),
  ]
}

function* findUnexpected(operations: readonly ClientOperation[]): Generator<Violation> {
  for (const { kind, record, outcome, message = 'no reason was given' } of operations)
    if (outcome === 'unexpected')
      yield { rule: 'unexpected', message: `${kind}${record ? ` of ${record}` : ''}: ${message}` }
}

/** Each create makes exactly one record, however often it is repeated, and no record exists without a create. */
function* checkCreates(
  operations: readonly ClientOperation[],
  table: ReadonlyMap<string, ObservedState>,
): Generator<Violation> {
  const makers = new Map<string, string>()
  const made = new Map<string, string>()
  const unanswered = new Set<string>()
  for (const [index, { kind, outcome, record, key = `${index}` }] of operations.entries()) {
    if (kind !== 'create') continue
    if (outcome === 'unknown') unanswered.add(key)
    if (outcome !== 'ok' || record === undefined) continue
    const other = made.get(key)
    if (other !== undefined && other !== record)
      yield { rule: 'duplicate', message: `one create, repeated, made the records ${other} and ${record}` }
    if ((makers.get(record) ?? key) !== key)
      yield { rule: 'created', message: `two creates were answered with the record ${record}` }
    made.set(key, record)
    makers.set(record, key)
  }
  const unclaimed = [...table.keys()].filter((record) => !makers.has(record))
  const open = [...unanswered].filter((key) => !made.has(key)).length
  if (unclaimed.length > open)
    yield { rule: 'created', message: `nobody made ${unclaimed.slice(open).join(', ')}, and they are there` }
}
