/** Consistency rules that prove checks, and their texts. */
export const CONSISTENCY_RULES = {
  'lost-update': 'an acknowledged update is missing',
  'token-twice': 'a token is stored more than once',
  'unknown-token': 'a stored token was never sent',
  'version-twice': 'two updates got the same version',
  'wrong-version': 'the version in the response to an update is not its base version plus 1',
  'wrong-base': 'an update was applied to a version other than its base version',
  'wrong-tokens': 'a response does not contain the tokens of its version',
  'went-back': 'a response has an older version than one that was visible before the request',
  'from-the-future': 'a response has a version before any client sent it',
  'false-conflict': 'a conflict was reported although no other update came first',
  'refused-but-there': 'a rejected update is stored',
  duplicate: 'a repeated request got two different responses',
  'final-version': 'the final version is not the number of updates',
  missing: 'a record was not found although no client had deleted it',
  removed: 'a deleted record still exists, or was deleted twice or at the wrong version',
  created: 'the records do not match the acknowledged creates',
  total: 'a total was not correct at any time during the request',
  unexpected: 'a response that no client should ever get',
  'feed-order': 'the change feed is out of order or repeats a change',
  'feed-gap': 'the change feed omits a change',
  'feed-table': 'the replayed change feed differs from the stored records',
} as const

export type ConsistencyRule = keyof typeof CONSISTENCY_RULES

export interface Violation {
  readonly rule: ConsistencyRule
  /** Describes what was observed. */
  readonly message: string
}

export function createViolation(rule: ConsistencyRule, message: string): Violation {
  return { rule, message }
}
