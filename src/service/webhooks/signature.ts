// Signatures as https://www.standardwebhooks.com has them: receivers verify them with code that they may have already.
import { createHmac, randomBytes } from 'node:crypto'

const MARK = 'whsec_'
const MIN_BYTES = 24
const MAX_BYTES = 64
const NEW_BYTES = 32

export const SECRET_RULE = `must be ${MARK} and ${MIN_BYTES} to ${MAX_BYTES} random bytes in base64`

export function newSecret(): string {
  return MARK + randomBytes(NEW_BYTES).toString('base64')
}

/** Whether calls can be signed with it. */
export function isSecret(text: string): boolean {
  const bytes = bytesOf(text)
  const isWhole = text === MARK + bytes.toString('base64')
  return isWhole && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES
}

export interface Signed {
  readonly id: string
  readonly timestampS: number
  readonly body: string
}

/** The headers that say which message it is, when it was sent, and that it is ours. */
export function signatureHeaders(secret: string, { id, timestampS, body }: Signed): Record<string, string> {
  const signature = createHmac('sha256', bytesOf(secret))
    .update(`${id}.${timestampS}.${body}`)
    .digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': `v1,${signature}`,
  }
}

function bytesOf(secret: string): Buffer {
  return Buffer.from(secret.startsWith(MARK) ? secret.slice(MARK.length) : '', 'base64')
}
