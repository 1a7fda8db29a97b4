/** Consistency rules that prove checks, and their texts. */
export const CONSISTENCY_RULES = {
  'lost-update': 'an update that was acknowledged is not there',
  'token-twice': 'a token is there more than once',
  'unknown-token': 'a token is there that nobody sent',
  'version-twice': 'two updates were given the same version',
  'wrong-version': 'an update was not answered with the version behind the one it named',
  'wrong-base': 'an update was put on another version than the one it named',
  'wrong-tokens': 'an answer does not show what its version holds',
  'went-back': 'a version was shown that had been overtaken before it was asked for',
  'from-the-future': 'a version was shown before anybody had sent it',
  'false-conflict': 'a conflict was told where nobody had been faster',
  'refused-but-there': 'an update that was refused is there',
  duplicate: 'a request that was repeated was answered in two ways',
  'final-version': 'the version at the end is not the number of updates',
  missing: 'a record was not found that nobody had removed',
  removed: 'a record was removed, and it was not the end of it',
  created: 'records and the creates that were acknowledged do not match',
  total: 'a total was told that was true at no moment of the call',
  unexpected: 'an answer that no client should ever get',
  'feed-order': 'the feed went back, or told something twice',
  'feed-gap': 'the feed left something out',
  'feed-table': 'the feed, folded, is not what the table holds',
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
