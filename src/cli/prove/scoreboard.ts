// Formats the result of a run as text or as JSON.
import { pluralize } from '../../model/values/plural.js'
import type { ProvedService, ProvePlan, ProveResult } from './run/proof.js'
import { CONSISTENCY_RULES, type Violation } from './checks/violation.js'

const MAX_SHOWN_VIOLATIONS = 5

export interface Scoreboard {
  readonly service: string
  readonly seed: number
  readonly seconds: number
  readonly clients: number
  readonly nodes: number
  readonly records: number
  readonly kills: number
  readonly updates: number
  readonly conflicts: number
  readonly unknown: { readonly done: number; readonly undone: number }
  readonly duplicates: number
  readonly dropped: number
  readonly creates: number
  readonly removals: number
  /** Finds whose total was checked; null if the service has no totals. */
  readonly finds: number | null
  /** Null if the service has no feed. */
  readonly feedChanges: number | null
  readonly violations: readonly Violation[]
  /** True if enough updates succeeded and conflicted for the run to be meaningful. */
  readonly isEnough: boolean
}

export function buildScoreboard(
  { name, adapter, addresses }: ProvedService & { readonly name: string },
  plan: ProvePlan,
  result: ProveResult,
): Scoreboard {
  const { journal } = result
  const [updates, conflicts] = [journal.count('update', 'ok'), journal.count('update', 'conflict')]
  return {
    service: name,
    nodes: addresses.length,
    kills: result.kills,
    updates,
    conflicts,
    duplicates: result.duplicates,
    dropped: result.dropped,
    feedChanges: result.feedChanges ?? null,
    violations: result.violations,
    seed: plan.seed,
    clients: plan.clients,
    seconds: Math.round(result.seconds * 10) / 10,
    records: journal.records.size,
    unknown: countResolved(result),
    creates: journal.count('create', 'ok'),
    removals: journal.count('remove', 'ok'),
    finds: adapter.total ? journal.count('total', 'ok') : null,
    isEnough: updates >= Math.max(1, plan.atLeast) && conflicts >= plan.atLeast,
  }
}

/** Counts the updates without a response that took effect, and those that did not. */
function countResolved({ journal, table }: ProveResult): Scoreboard['unknown'] {
  const stored = new Set<string>()
  for (const { tokens } of table.values()) for (const token of tokens) stored.add(token)
  for (const { outcome, tokens = [] } of journal.operations)
    if (outcome === 'ok' && tokens.length > 0) stored.add(tokens.at(-1) ?? '')
  const unknown = new Set(
    journal.operations.flatMap(({ kind, outcome, token }) =>
      kind === 'update' && outcome === 'unknown' && token !== undefined ? [token] : [],
    ),
  )
  const done = [...unknown].filter((token) => stored.has(token)).length
  return { done, undone: unknown.size - done }
}

export function formatScoreboard(score: Scoreboard, atLeast: number): string {
  const { updates, conflicts, unknown, duplicates, dropped, finds, feedChanges, violations } = score
  const rows: [string, number | null, string?][] = [
    ['updates ok', updates],
    ['conflicts', conflicts],
    ['unknown, resolved', unknown.done + unknown.undone, `${unknown.done} done, ${unknown.undone} not`],
    ['duplicates', duplicates],
    ['dropped', dropped],
    ['finds', finds],
    ['feed changes', feedChanges],
    ['violations', violations.length],
  ]
  const lines = rows.map(([name, value, note]) => {
    const text = (value === null ? 'none' : value.toLocaleString('en')).padStart(8)
    return `  ${name.padEnd(18)}${text}${note === undefined ? '' : `  (${note})`}`
  })
  return [
    formatHeading(score),
    ...lines,
    ...explainViolations(violations),
    ...explainShortage(score, atLeast),
    '',
  ].join('\n')
}

function formatHeading({ service, clients, nodes, kills, seconds, records, seed }: Scoreboard): string {
  const what = [
    pluralize(clients, 'client'),
    pluralize(nodes, 'node'),
    pluralize(kills, 'kill'),
    `${seconds} s`,
    pluralize(records, 'record'),
    `seed ${seed}`,
  ]
  return `${service}: ${what.join(', ')}`
}

function explainViolations(violations: readonly Violation[]): string[] {
  if (violations.length === 0) return []
  // Shows one violation of each rule first, because more of the same kind add little.
  const seen = new Set<string>()
  const isFirst = ({ rule }: Violation) => !seen.has(rule) && seen.add(rule)
  const ordered = [...violations.filter(isFirst), ...violations].slice(0, MAX_SHOWN_VIOLATIONS)
  const listed = [...new Set(ordered)]
  const rest = violations.length - listed.length
  return [
    '',
    ...listed.flatMap(({ rule, message }) => [`  ${rule}: ${CONSISTENCY_RULES[rule]}`, `    ${message}`]),
    ...(rest > 0 ? [`  and ${rest.toLocaleString('en')} more`] : []),
  ]
}

function explainShortage({ isEnough, updates }: Scoreboard, atLeast: number): string[] {
  if (isEnough) return []
  if (updates === 0) return ['', '  No update succeeded, so the run proves nothing.']
  return ['', `  Fewer than ${atLeast.toLocaleString('en')} updates succeeded or conflicted (--at-least).`]
}
