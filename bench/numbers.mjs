// Statistics over the rounds, and their formats.

export function findMedian(numbers) {
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b)
  if (sorted.length === 0) return undefined
  const half = sorted.length / 2
  return sorted.length % 2 === 1 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2
}

/** Returns the 95 % confidence interval of the median, by the ranks of the sorted numbers. A few numbers give their whole range. */
export function findMedianInterval(numbers) {
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b)
  const rank = Math.max(0, Math.floor(sorted.length / 2 - 0.98 * Math.sqrt(sorted.length) - 0.5))
  return [sorted[rank], sorted[sorted.length - 1 - rank]]
}

/** Compares runs of the same round only. */
export function computeRatios(ours, theirs, key) {
  return ours.map((run, round) => run[key] / theirs[round]?.[key]).filter(Number.isFinite)
}

export function computeRatio(ours, theirs, key = 'perSecond') {
  return ours && theirs ? findMedian(computeRatios(ours, theirs, key)) : undefined
}

export function formatWhole(number) {
  return Number.isFinite(number) ? Math.round(number).toLocaleString('en') : '–'
}

/** Formats a number with about three significant digits. */
export function formatShort(number) {
  if (!Number.isFinite(number)) return '–'
  if (number >= 100) return formatWhole(number)
  if (number >= 10) return number.toFixed(1)
  return number >= 0.095 || number === 0 ? number.toFixed(2) : number.toPrecision(2)
}

/** Formats the median, the lowest and the highest number. */
export function formatSpread(numbers) {
  if (numbers.length === 0) return '–'
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)]
  return `${formatShort(findMedian(numbers))} (${formatShort(low)}–${formatShort(high)})`
}

/** Formats the median and the middle half of the numbers, which tells more than the extremes of many short turns. */
export function formatHalf(numbers) {
  if (numbers.length === 0) return '–'
  const sorted = [...numbers].sort((a, b) => a - b)
  const quarter = Math.floor((sorted.length - 1) / 4)
  const [low, high] = [sorted[quarter], sorted[sorted.length - 1 - quarter]]
  return `${formatShort(findMedian(sorted))} (${formatShort(low)}–${formatShort(high)})`
}
