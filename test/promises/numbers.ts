export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}

/** `200: 5,012, 409: 120`, by status. */
export function describeAnswers(answers: ReadonlyMap<string, number>): string {
  return [...answers]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([status, count]) => `${status}: ${count.toLocaleString('en')}`)
    .join(', ')
}

/** Answers with a status of 500 and above that are not one of `expected`. */
export function countServerErrors(
  answers: ReadonlyMap<string, number>,
  expected: readonly string[] = [],
): number {
  return [...answers].reduce(
    (sum, [status, count]) => (/^5/.test(status) && !expected.includes(status) ? sum + count : sum),
    0,
  )
}

/** A note if the host of a virtual machine took processor time from the measurement; otherwise empty. */
export function describeStolen(runs: readonly { readonly stolen: number }[]): string {
  const most = Math.max(...runs.map(({ stolen }) => stolen))
  return most > 0.01 ? `; the host took up to ${(most * 100).toFixed(0)} % of the processor time` : ''
}
