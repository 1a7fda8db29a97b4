// What is given out once and proves who comes: ids of sessions, keys, one-time links.
import { hash, randomBytes } from 'node:crypto'

const TOKEN_BYTES = 32
const SECRET_TOKEN_PATTERN = /^[A-Za-z0-9_-]{43}$/

export function createToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

/** Whether it could be one at all. */
export function isTokenFormat(text: string): boolean {
  return SECRET_TOKEN_PATTERN.test(text)
}

/** What is stored of it, and what it is found by. 256 random bits need no slower hash: nobody can try them out. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'base64url')
}
