// What is given out once and proves who comes: ids of sessions, keys, one-time links.
import { hash, randomBytes } from 'node:crypto'

const BYTES = 32
const TOKEN = /^[A-Za-z0-9_-]{43}$/

export function newToken(): string {
  return randomBytes(BYTES).toString('base64url')
}

/** Whether it could be one at all. */
export function isToken(text: string): boolean {
  return TOKEN.test(text)
}

/** What is stored of it, and what it is found by. 256 random bits need no slower hash: nobody can try them out. */
export function hashOfToken(token: string): string {
  return hash('sha256', token, 'base64url')
}
