// Turns a client's file name into one that is safe to show, log and send back. Blobs on disk never use it.
import { countCharacters } from './value.js'

const MAX_FILE_NAME_CHARACTERS = 255
/** An extension such as `.pdf`; truncation keeps it. */
const FILE_EXTENSION = /\.[\p{L}\p{N}]{1,10}$/u
/** Control characters, bidirectional marks, line separators and lone surrogates. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cs}\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu
const DEFAULT_FILE_NAME = 'file'

/** Returns the last segment of a Windows or POSIX path, in Unicode form NFC, truncated to 255 characters. */
export function sanitizeFileName(input: string | undefined): string {
  const last = /[^/\\]*$/.exec(input ?? '')?.[0] ?? ''
  const name = last.replace(UNSAFE_CHARACTERS, '').normalize('NFC').trim()
  if (/^\.*$/.test(name)) return DEFAULT_FILE_NAME
  if (countCharacters(name) <= MAX_FILE_NAME_CHARACTERS) return name
  const ending = FILE_EXTENSION.exec(name)?.[0] ?? ''
  const stem = Array.from(name.slice(0, name.length - ending.length))
  return stem.slice(0, MAX_FILE_NAME_CHARACTERS - countCharacters(ending)).join('') + ending
}

/** Reads the file name from a Content-Disposition header (RFC 6266). `filename*` takes precedence over `filename`. */
export function parseDispositionName(disposition: string): string | undefined {
  const extended = /filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(disposition)?.[1]
  if (extended !== undefined) {
    try {
      return decodeURIComponent(extended)
    } catch {
      // The value is not valid percent-encoding: fall back to `filename`.
    }
  }
  const [, quoted, unquoted] = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition) ?? []
  return quoted?.replace(/\\(.)/g, '$1') ?? unquoted
}
