// Signs messages as specified by https://www.standardwebhooks.com, for which receivers find libraries.
import { createHmac, randomBytes } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'
const MIN_SECRET_BYTES = 24
const MAX_SECRET_BYTES = 64
const NEW_SECRET_BYTES = 32

export const SECRET_RULE = `must be ${SECRET_PREFIX} followed by ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} random bytes in base64`

export function createSecret(): string {
  return SECRET_PREFIX + randomBytes(NEW_SECRET_BYTES).toString('base64')
}

/** True if the text is a secret in canonical base64 with a permitted length. */
export function isValidSecret(text: string): boolean {
  const bytes = decodeSecret(text)
  const isWhole = text === SECRET_PREFIX + bytes.toString('base64')
  return isWhole && bytes.length >= MIN_SECRET_BYTES && bytes.length <= MAX_SECRET_BYTES
}

export interface SignedContent {
  readonly id: string
  readonly timestampS: number
  readonly body: string
}

export function buildSignatureHeaders(
  secret: string,
  { id, timestampS, body }: SignedContent,
): Record<string, string> {
  const signature = createHmac('sha256', decodeSecret(secret))
    .update(`${id}.${timestampS}.${body}`)
    .digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': `v1,${signature}`,
  }
}

function decodeSecret(secret: string): Buffer {
  return Buffer.from(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : '', 'base64')
}
