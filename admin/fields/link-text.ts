// Finds web and e-mail addresses in a text.

export interface TextPart {
  readonly text: string
  /** Only http, https and mailto. */
  readonly href?: string | undefined
}

/** A longer word is no address that somebody has typed. */
const MAX_ADDRESS_CHARS = 2_000
const MAIL = /^[^\s@<>()"',;:]{1,64}@[^\s@<>()"',;:]{1,190}\.[^\s@<>()"',;:.]{1,63}$/u
const SCHEMES: readonly string[] = ['http:', 'https:', 'mailto:']
const HAS_SCHEME = /^(?:https?:\/\/|mailto:)/i
const BEFORE = /^[(<["'«]+/
const AFTER = /[)>\]"'»,;:.!?]+$/

function findHref(word: string): string | undefined {
  // Encoded, because `a?cc=b@example.org` would add a receiver.
  if (MAIL.test(word)) return `mailto:${encodeURIComponent(word).replace('%40', '@')}`
  if (!HAS_SCHEME.test(word) || !URL.canParse(word)) return undefined
  const { protocol, href } = new URL(word)
  return SCHEMES.includes(protocol) ? href : undefined
}

/** Splits a text into plain parts and links. The parts together are the text. */
export function findLinks(text: string): readonly TextPart[] {
  if (!text.includes('@') && !/https?:\/\/|mailto:/i.test(text)) return [{ text }]
  const parts: TextPart[] = []
  let plain = ''
  // Words first: an expression that searches in the whole text would take very long in a long one.
  for (const word of text.split(/(\s+)/)) {
    const isLong = word.length > MAX_ADDRESS_CHARS
    const before = isLong ? '' : (BEFORE.exec(word)?.[0] ?? '')
    const after = isLong ? '' : (AFTER.exec(word.slice(before.length))?.[0] ?? '')
    const core = word.slice(before.length, word.length - after.length)
    const href = isLong ? undefined : findHref(core)
    if (href === undefined) {
      plain += word
      continue
    }
    if (plain + before !== '') parts.push({ text: plain + before })
    parts.push({ text: core, href })
    plain = after
  }
  return plain === '' ? parts : [...parts, { text: plain }]
}
