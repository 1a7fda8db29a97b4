// Damages bytes of a database file, like a failing disk or a stray program.
import { readFileSync, writeFileSync } from 'node:fs'

export const PAGE_BYTES = 4096
const FLIPPED_BYTES = 64

/**
 * Flips the first bytes of each of these pages, where the type of the page is stored. Pages count from 1. Nobody may have the file open.
 */
export function damagePages(file: string, isMeant: (page: number) => boolean): void {
  const bytes = readFileSync(file)
  for (let page = 1; page <= bytes.length / PAGE_BYTES; page++) {
    if (isMeant(page)) flip(bytes, (page - 1) * PAGE_BYTES)
  }
  writeFileSync(file, bytes)
}

/** The pages that hold this text. */
export function pagesWith(file: string, text: string): number[] {
  const bytes = readFileSync(file)
  const pages = Array.from({ length: bytes.length / PAGE_BYTES }, (_, index) => index + 1)
  return pages.filter((page) => bytes.subarray((page - 1) * PAGE_BYTES, page * PAGE_BYTES).includes(text))
}

/** Fills a page with zeros, like a disk that lost it. */
export function zeroPage(file: string, page: number): void {
  const bytes = readFileSync(file)
  bytes.fill(0, (page - 1) * PAGE_BYTES, page * PAGE_BYTES)
  writeFileSync(file, bytes)
}

function flip(bytes: Buffer, start: number): void {
  for (let index = start; index < start + FLIPPED_BYTES; index++) bytes[index] = ~(bytes[index] ?? 0) & 0xff
}
