/** Formats rows as lines of aligned columns below their headings. */
export function formatColumns(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const lines = all.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
  return lines.map((line) => line.trimEnd()).join('\n')
}

/** Formats a timestamp to the minute in UTC; `never` if there is none. */
export function formatTimestamp(timestamp: unknown): string {
  return typeof timestamp === 'string' ? `${timestamp.slice(0, 16).replace('T', ' ')} UTC` : 'never'
}
