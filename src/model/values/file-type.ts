// Detects the content type of a file from its first bytes. The type and the name that a client sends are not trusted.

/** Detection reads this many bytes from the beginning of a file. */
export const SNIFF_BYTES = 4096

const UNKNOWN_TYPE = 'application/octet-stream'
const TEXT_TYPE = 'text/plain; charset=utf-8'

/** Expected bytes at an offset, as Latin-1 text. */
type MagicBytes = readonly [offset: number, bytes: string]

const MAGIC_BYTES: readonly (readonly [type: string, ...marks: MagicBytes[]])[] = [
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF87a']],
  ['image/gif', [0, 'GIF89a']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBP']],
  ['application/pdf', [0, '%PDF-']],
  ['application/zip', [0, 'PK\x03\x04']],
  ['application/zip', [0, 'PK\x05\x06']],
  ['application/gzip', [0, '\x1f\x8b\x08']],
]

/** SVG, HTML and scripts count as plain text, so that a browser never executes them. */
export function detectContentType(head: Uint8Array): string {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength).toString('latin1')
  const known = MAGIC_BYTES.find(([, ...marks]) =>
    marks.every(([offset, mark]) => bytes.startsWith(mark, offset)),
  )
  return known?.[0] ?? (isUtf8Text(head) ? TEXT_TYPE : UNKNOWN_TYPE)
}

function isUtf8Text(head: Uint8Array): boolean {
  if (head.length === 0) return false
  try {
    // `stream` tolerates a last character that the sniff limit cut off.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
    // eslint-disable-next-line no-control-regex -- the pattern finds control characters
    return !/[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]/.test(text)
  } catch {
    return false // The decoder throws on invalid UTF-8.
  }
}
