// Says after a run how many tests ran in a browser. With REQUIRE_BROWSER=1 a run in which none did so fails.
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A file with a line for each test that ran in a browser, and for each file of tests that found no browser. */
    browserJournal: string
  }
}

/** One line of the journal. */
export type BrowserNote =
  { readonly ran: string; readonly browser: string } | { readonly missing: readonly string[] }

export function writeBrowserNote(journal: string, note: BrowserNote): void {
  appendFileSync(journal, `${JSON.stringify(note)}\n`)
}

export interface BrowserReport {
  readonly lines: readonly string[]
  readonly isFailure: boolean
}

/** Describes the browser tests of a run. A run that has none, and needs none, gets no line. */
export function describeBrowserTests(notes: readonly BrowserNote[], isRequired: boolean): BrowserReport {
  const ran = notes.flatMap((note) => ('ran' in note ? [note.browser] : []))
  const missing = notes.flatMap((note) => ('missing' in note ? [note.missing] : []))
  const lines = ran.length > 0 ? [`${ran.length} tests ran in ${[...new Set(ran)].join(' and ')}.`] : []
  if (missing.length > 0)
    lines.push('Browser tests did not run: no browser starts.', ...new Set(missing.flat()))
  else if (ran.length === 0 && isRequired) lines.push('Browser tests did not run: none was selected.')
  else return { lines, isFailure: false }
  lines.push('Install Chromium (on Debian: apt-get install chromium) or Chrome,')
  lines.push('or set TEST_BROWSER to the path of one, and run the tests again.')
  if (isRequired) lines.push('REQUIRE_BROWSER=1 makes this a failure.')
  return { lines, isFailure: isRequired }
}

export function setup(project: TestProject): () => void {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-browser-'))
  const journal = path.join(folder, 'journal.ndjson')
  project.provide('browserJournal', journal)
  return () => {
    const text = existsSync(journal) ? readFileSync(journal, 'utf8') : ''
    const notes = text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as BrowserNote)
    rmSync(folder, { recursive: true, force: true })
    const { lines, isFailure } = describeBrowserTests(notes, process.env['REQUIRE_BROWSER'] === '1')
    for (const line of lines) process.stdout.write(`${line}\n`)
    if (isFailure) process.exitCode = 1
  }
}
