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
    const operationsOfRecord = byRecord.get(operation.record)
    if (operationsOfRecord) operationsOfRecord.push(operation)
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
  for (const { kind, record, outcome, message = 'no reason given' } of operations)
    if (outcome === 'unexpected')
      yield { rule: 'unexpected', message: `${kind}${record ? ` of ${record}` : ''}: ${message}` }
}

/** Each create produces exactly one record, however often it is repeated, and no record exists without a create. */
function* checkCreates(
  operations: readonly ClientOperation[],
  table: ReadonlyMap<string, ObservedState>,
): Generator<Violation> {
  const keyByRecord = new Map<string, string>()
  const recordByKey = new Map<string, string>()
  const unanswered = new Set<string>()
  for (const [index, { kind, outcome, record, key = `${index}` }] of operations.entries()) {
    if (kind !== 'create') continue
    if (outcome === 'unknown') unanswered.add(key)
    if (outcome !== 'ok' || record === undefined) continue
    const other = recordByKey.get(key)
    if (other !== undefined && other !== record)
      yield {
        rule: 'duplicate',
        message: `one create, sent repeatedly, created the records ${other} and ${record}`,
      }
    if ((keyByRecord.get(record) ?? key) !== key)
      yield { rule: 'created', message: `two creates got the same record ${record} in their responses` }
    recordByKey.set(key, record)
    keyByRecord.set(record, key)
  }
  const unexplained = [...table.keys()].filter((record) => !keyByRecord.has(record))
  const open = [...unanswered].filter((key) => !recordByKey.has(key)).length
  if (unexplained.length > open)
    yield {
      rule: 'created',
      message: `records exist that no client created: ${unexplained.slice(open).join(', ')}`,
    }
}
