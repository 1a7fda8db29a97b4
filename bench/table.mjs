// Prints tables as text and as Markdown, and writes Markdown into a section of a file.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** `texts` is the number of leading columns that hold text; numbers are aligned right. */
export function printText({ headings, rows, texts = 1 }) {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column].length)))
  const pad = (cell, column) => (column < texts ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))
  return all.map((row) => row.map(pad).join('  ').trimEnd()).join('\n')
}

/** Pads columns as prettier does, so that the document stays formatted. */
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

/** Replaces the text between the two markers of that name; a file without markers is overwritten with the section. */
export function writeSection(file, name, text) {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const old = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const section = `${begin}\n\n${text.trim()}\n\n${end}`
  const marked = new RegExp(`^${begin}$[^]*?^${end}$`, 'm')
  writeFileSync(file, marked.test(old) ? old.replace(marked, () => section) : `${section}\n`)
}
