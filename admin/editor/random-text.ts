const RANDOM_BYTES = 16

/** A text that nobody else has. `crypto.randomUUID` exists only on https and localhost. */
export function createRandomText(): string {
  return [...crypto.getRandomValues(new Uint8Array(RANDOM_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
