// Prints what a command lists or shows: a table for people, or one JSON document for programs (`--json`).
import type { Command } from 'commander'
import { escapeControls } from './escape-controls.js'
import { spellCommands } from './invocation.js'

/** One column of the table. The keys of the rows are the keys of the JSON document. */
export interface ListingColumn<Row> {
  readonly heading: string
  readonly format: (row: Row) => string
}

export interface ListingOptions {
  /** Prints JSON instead of the table. */
  readonly json: boolean
  /** Printed in place of a table without rows. JSON has an empty array. */
  readonly ifEmpty?: string
}

/** Value of `--json`, as commander passes it with the other options. */
export interface JsonFlag {
  readonly json?: boolean
}

export function addJsonFlag(command: Command): Command {
  return command.option('--json', 'print JSON for programs')
}

/** Prints the rows as a table or as a JSON array. */
export function printListing<Row>(
  rows: readonly Row[],
  columns: readonly ListingColumn<Row>[],
  { json, ifEmpty }: ListingOptions,
): void {
  if (json) printJson(rows)
  else
    printLine(
      rows.length === 0 && ifEmpty !== undefined ? spellCommands(ifEmpty) : formatTable(rows, columns),
    )
}

/** Prints one JSON document, on one line. */
export function printJson(document: unknown): void {
  printLine(JSON.stringify(document))
}

export function printLine(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Prints a remark on stderr, which keeps stdout for the result. */
export function printNote(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Formats rows as lines of aligned columns below their headings. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly ListingColumn<Row>[]): string {
  const cells = [
    columns.map(({ heading }) => heading),
    ...rows.map((row) => columns.map(({ format }) => escapeControls(format(row)))),
  ]
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const lines = cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  return lines.map((line) => line.trimEnd()).join('\n')
}

/** Formats a timestamp to the minute in UTC; `never` if there is none. */
export function formatTimestamp(timestamp: string | null): string {
  return timestamp === null ? 'never' : `${timestamp.slice(0, 16).replace('T', ' ')} UTC`
}

/** Formats a list of names; `none` if it is empty. */
export function formatNames(names: readonly string[]): string {
  return names.join(', ') || 'none'
}
