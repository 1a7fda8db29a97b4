// A table for a terminal, and the same one as Markdown; and where Markdown goes in a file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** `texts` are the first columns, which are not numbers. */
export function printText({ headings, rows, texts = 1 }) {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column].length)))
  const pad = (cell, column) => (column < texts ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))
  return all.map((row) => row.map(pad).join('  ').trimEnd()).join('\n')
}

/** In the columns of prettier, so that a document which holds it is as it would be formatted. */
export function printMarkdown({ headings, rows, texts = 1 }) {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(3, ...all.map((row) => row[column].length)))
  const pad = (cell, column) => (column < texts ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))
  const line = (row) => `| ${row.map(pad).join(' | ')} |`
  const rule = widths.map((width, column) =>
    column < texts ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  )
  return [line(headings), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')
}

/** Between the two marks of that name, which stand alone on their lines; a file without them becomes the section. */
export function writeSection(file, name, text) {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const old = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const section = `${begin}\n\n${text.trim()}\n\n${end}`
  const marked = new RegExp(`^${begin}$[^]*?^${end}$`, 'm')
  writeFileSync(file, marked.test(old) ? old.replace(marked, () => section) : `${section}\n`)
}
