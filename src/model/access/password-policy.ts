// The password policy: a minimum length, no common password. It has no rules about kinds of characters.
import { MAX_PASSWORD_BYTES, MIN_PASSWORD_CHARACTERS } from '../catalog/auth-models.js'
import { COMMON_PASSWORDS } from './common-passwords.js'
import { countCharacters } from '../values/value.js'

/** A password that repeats a block of at most this many characters is as weak as the block. */
const MAX_REPEATED_CHARACTERS = 6

export interface PasswordOwner {
  readonly username?: unknown
  readonly name?: unknown
}

/** Returns a message with all errors of a password for this account. */
export function validatePassword(password: string, { username, name }: PasswordOwner): string | undefined {
  const errors: string[] = []
  if (countCharacters(password) < MIN_PASSWORD_CHARACTERS)
    errors.push(`must have at least ${MIN_PASSWORD_CHARACTERS} characters`)
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES)
    errors.push(`must have at most ${MAX_PASSWORD_BYTES} bytes`)
  const plain = normalizePassword(password)
  if (COMMON_PASSWORDS.has(plain)) errors.push('must not be one that many people have')
  if (isRepetition(plain)) errors.push('must not repeat the same few characters')
  if (isSameIgnoringCase(plain, username)) errors.push('must not be the user name')
  else if (isSameIgnoringCase(plain, name)) errors.push('must not be the name of its user')
  return errors.length === 0 ? undefined : errors.join(' and ')
}

function isSameIgnoringCase(plain: string, other: unknown): boolean {
  return typeof other === 'string' && other !== '' && normalizePassword(other) === plain
}

function normalizePassword(text: string): string {
  return text.normalize('NFC').trim().toLowerCase()
}

/** The last block may be incomplete: `abcabcabcab`. */
function isRepetition(text: string): boolean {
  const characters = Array.from(text)
  for (let size = 1; size <= Math.min(MAX_REPEATED_CHARACTERS, characters.length / 2); size++)
    if (characters.every((character, index) => character === characters[index % size])) return true
  return false
}
