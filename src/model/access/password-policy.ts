// What may be a password. Length counts, and nothing that everybody tries first; which characters it has is nobody's business.
import { MAX_PASSWORD_BYTES, MIN_PASSWORD_LENGTH } from '../catalog/auth-models.js'
import { COMMON_PASSWORDS } from './common-passwords.js'
import { lengthOf } from '../values/value.js'

/** A block of up to so many characters that is repeated to the end says no more than the block. */
const MAX_REPEATED = 6

export interface Owner {
  readonly username?: unknown
  readonly name?: unknown
}

/** What is wrong with a password for this account, all of it; undefined if nothing is. */
export function passwordFault(password: string, { username, name }: Owner): string | undefined {
  const faults: string[] = []
  if (lengthOf(password) < MIN_PASSWORD_LENGTH)
    faults.push(`must have at least ${MIN_PASSWORD_LENGTH} characters`)
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES)
    faults.push(`must have at most ${MAX_PASSWORD_BYTES} bytes`)
  const plain = plainly(password)
  if (COMMON_PASSWORDS.has(plain)) faults.push('must not be one that many people have')
  if (isRepetition(plain)) faults.push('must not repeat the same few characters')
  if (isSame(plain, username)) faults.push('must not be the user name')
  else if (isSame(plain, name)) faults.push('must not be the name of its user')
  return faults.length === 0 ? undefined : faults.join(' and ')
}

function isSame(plain: string, other: unknown): boolean {
  return typeof other === 'string' && other !== '' && plainly(other) === plain
}

function plainly(text: string): string {
  return text.normalize('NFC').trim().toLowerCase()
}

/** The last block may be cut off: `abcabcabcab`. */
function isRepetition(text: string): boolean {
  const characters = Array.from(text)
  for (let size = 1; size <= Math.min(MAX_REPEATED, characters.length / 2); size++)
    if (characters.every((character, index) => character === characters[index % size])) return true
  return false
}
