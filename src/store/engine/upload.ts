// Uploads: writes received content to a file and measures and hashes it on the way.
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { VersoError } from '../../errors.js'
import { SNIFF_BYTES } from '../../model/values/file-type.js'
import type { PendingBlob } from './database.js'

/** An upload without progress for this long is abandoned. */
export const UPLOAD_EXPIRY_MS = 60 * 60_000

/** The content of an abandoned upload was removed. */
export function createUploadExpiredError(): VersoError {
  return new VersoError('busy', 'The uploaded file has expired: send it again; nothing was changed', {
    retryAfterS: 1,
  })
}

/** Writes the whole source to the file and resolves after the file is synced to disk. */
export async function writeUpload(
  handle: FileHandle,
  source: AsyncIterable<Uint8Array>,
  limitBytes: number,
): Promise<Omit<PendingBlob, 'key'>> {
  const digest = createHash('sha256')
  const head: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    if (size < SNIFF_BYTES) head.push(Uint8Array.from(chunk.subarray(0, SNIFF_BYTES - size)))
    size += chunk.length
    if (size > limitBytes)
      throw new VersoError(
        'too-large',
        `The file is larger than ${limitBytes} bytes (--upload-limit); nothing was changed`,
      )
    digest.update(chunk)
    await handle.writeFile(chunk)
  }
  await handle.sync()
  return { size, sha256: digest.digest('hex'), head: Buffer.concat(head) }
}

/** The disk failed, or someone changed the file: not a defect of the service. */
export function createUnreadableError(error: unknown): VersoError {
  const message =
    'The content of the file cannot be read, or differs from what was stored; nothing was changed'
  return new VersoError('busy', message, { retryAfterS: 10, cause: error })
}
