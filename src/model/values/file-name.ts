// What a client calls a file → a name that is safe to show, to log and to send back. Nothing on disk is ever called by it.
import { countCharacters } from './value.js'

const MAX_FILE_NAME_CHARACTERS = 255
/** An ending such as `.pdf` that is kept when a name is cut. */
const FILE_EXTENSION = /\.[\p{L}\p{N}]{1,10}$/u
/** Controls, what turns the direction of text, separators of lines, and halves of pairs. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cs}\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu
const DEFAULT_FILE_NAME = 'file'

/** The last step of a path as either kind of system writes it, in one spelling, at most 255 characters long. */
export function sanitizeFileName(input: string | undefined): string {
  const last = /[^/\\]*$/.exec(input ?? '')?.[0] ?? ''
  const name = last.replace(UNSAFE_CHARACTERS, '').normalize('NFC').trim()
  if (/^\.*$/.test(name)) return DEFAULT_FILE_NAME
  if (countCharacters(name) <= MAX_FILE_NAME_CHARACTERS) return name
  const ending = FILE_EXTENSION.exec(name)?.[0] ?? ''
  const stem = Array.from(name.slice(0, name.length - ending.length))
  return stem.slice(0, MAX_FILE_NAME_CHARACTERS - countCharacters(ending)).join('') + ending
}

/** What an answer calls its content (RFC 6266): the name in UTF-8 is the better one. */
export function parseDispositionName(disposition: string): string | undefined {
  const extended = /filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(disposition)?.[1]
  if (extended !== undefined) {
    try {
      return decodeURIComponent(extended)
    } catch {
      // Not encoded as it says: then the other one.
    }
  }
  const [, quoted, bare] = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition) ?? []
  return quoted?.replace(/\\(.)/g, '$1') ?? bare
}
