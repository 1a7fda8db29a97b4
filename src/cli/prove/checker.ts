// Holds what clients were told against what is there at the end. Pure: a history goes in, violations come out, in n log n.
import type { State } from './adapter.js'
import type { Operation } from './journal.js'
import { checkRecord } from './record-check.js'
import { checkTotals } from './total-check.js'
import type { Violation } from './violation.js'

export interface History {
  readonly operations: readonly Operation[]
  /** What is there at the end, by record; those that are gone are not in it. */
  readonly table: ReadonlyMap<string, State>
}

export function check({ operations, table }: History): Violation[] {
  const byRecord = new Map<string, Operation[]>()
  for (const operation of operations) {
    if (operation.record === undefined) continue
    const known = byRecord.get(operation.record)
    if (known) known.push(operation)
    else byRecord.set(operation.record, [operation])
  }
  return [
    ...unexpected(operations),
    ...checkCreates(operations, table),
    ...[...byRecord].flatMap(([record, all]) => [...checkRecord(record, all, table.get(record))]),
    ...checkTotals(operations, table),
  ]
}

function* unexpected(operations: readonly Operation[]): Generator<Violation> {
  for (const { kind, record, outcome, message = 'no reason was given' } of operations)
    if (outcome === 'unexpected')
      yield { rule: 'unexpected', message: `${kind}${record ? ` of ${record}` : ''}: ${message}` }
}

/** Each create makes one record of its own, however often it is repeated; and nothing else makes any. */
function* checkCreates(
  operations: readonly Operation[],
  table: ReadonlyMap<string, State>,
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
  const nobodys = [...table.keys()].filter((record) => !makers.has(record))
  const open = [...unanswered].filter((key) => !made.has(key)).length
  if (nobodys.length > open)
    yield { rule: 'created', message: `nobody made ${nobodys.slice(open).join(', ')}, and they are there` }
}
