import type { UserReference } from '../service/people.js'
import { getAccount } from '../service/session.js'
import { nameAuthor } from '../texts/author-name.js'
import { getTexts } from '../texts/texts.js'

/** The person who changed a record while its form is open. One's own changes come from another tab, or from a program. */
export function nameOtherAuthor(by: UserReference | null): string {
  return by?.id === getAccount().id ? getTexts().conflict.youElsewhere : nameAuthor(by)
}
