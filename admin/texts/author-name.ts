// People as the history names them.
import type { UserReference } from '../service/people.js'
import { getAccount } from '../service/session.js'
import { getTexts } from './texts.js'

/** The name of the person who made a change. The service itself and the command line have none. */
export function nameAuthor(by: UserReference | null): string {
  const { common } = getTexts()
  if (by === null) return common.nobody
  if (by.id === getAccount().id) return common.you
  const { name } = by
  return typeof name === 'string' && name !== '' ? name : `#${by.id}`
}
