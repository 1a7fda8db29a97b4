// Random tokens: session ids, API keys and reset links.
import { hash, randomBytes } from 'node:crypto'

const TOKEN_BYTES = 32
const SECRET_TOKEN_PATTERN = /^[A-Za-z0-9_-]{43}$/

export function createToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url')
}

/** True if the text has the format of a token. */
export function isTokenFormat(text: string): boolean {
  return SECRET_TOKEN_PATTERN.test(text)
}

/** Returns the hash that is stored and looked up. A fast hash is enough for 256 random bits. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'base64url')
}
