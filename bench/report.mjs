// Results → a table: medians of the rounds, and the rounds' own ratios, because only what ran side by side compares.
import { cpus, loadavg, totalmem } from 'node:os'

const SATURATED = 0.9
const HEADINGS = [
  ...['operation', 'server', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/request', 'RSS MB'],
  ...['Verso ÷ it, requests/s', 'Verso ÷ it, CPU'],
]

export function machine() {
  const [cpu] = cpus()
  const model = cpu && cpu.model !== 'unknown' ? ` (${cpu.model})` : ''
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  const load = loadavg()[0].toFixed(1)
  return `${cpus().length} cores${model}, ${memory}, ${process.platform} ${process.arch}, Node ${process.version}; load average before: ${load}`
}

/** `results` has a list of runs, one for each round, under operation and server. */
export function tableOf(results, titles) {
  return Object.entries(results).flatMap(([operation, servers]) =>
    Object.entries(servers).map(([name, runs]) => [
      operation,
      titles[name],
      whole(median(runs, 'perSecond')),
      fixed(median(runs, 'p50')),
      fixed(median(runs, 'p99')),
      whole(median(runs, 'cpuUs')),
      whole(median(runs, 'rssMb')),
      ...(name === 'verso' ? ['', ''] : ['perSecond', 'cpuUs'].map((key) => ratio(servers.verso, runs, key))),
    ]),
  )
}

/** What a reader must know before believing the table. */
export function notesOn(results, titles) {
  const notes = []
  for (const [operation, servers] of Object.entries(results)) {
    for (const [name, runs] of Object.entries(servers)) {
      const faults = new Map()
      for (const [what, count] of runs.flatMap((run) => run.faults))
        faults.set(what, (faults.get(what) ?? 0) + count)
      for (const [what, count] of faults)
        notes.push(`NOT ALL SUCCEEDED: ${titles[name]}, ${operation}: ${what} × ${count}`)
      const busy = median(runs, 'generatorBusy')
      if (busy >= SATURATED)
        notes.push(
          `${titles[name]}, ${operation}: the load generator used ${whole(busy * 100)} % of a core; the server may be able to do more`,
        )
    }
  }
  return notes
}

export function printText(rows) {
  const all = [HEADINGS, ...rows]
  const widths = HEADINGS.map((_, column) => Math.max(...all.map((row) => row[column].length)))
  return all.map((row) => row.map((cell, column) => pad(cell, widths[column], column)).join('  ')).join('\n')
}

export function printMarkdown(rows, about, notes) {
  const lines = [HEADINGS, HEADINGS.map((_, column) => (column < 2 ? '---' : '--:')), ...rows]
  const table = lines.map((row) => `| ${row.join(' | ')} |`).join('\n')
  const list = notes.length > 0 ? `\n${notes.map((note) => `- ${note}`).join('\n')}\n` : ''
  return `${about.join('\n\n')}\n\n${table}\n${list}`
}

function pad(cell, width, column) {
  return column < 2 ? cell.padEnd(width) : cell.padStart(width)
}

/** The middle one of the rounds, and from the lowest to the highest. */
function ratio(ours, theirs, key) {
  const ratios = ours.map((run, round) => run[key] / theirs[round]?.[key]).filter(Number.isFinite)
  if (ratios.length === 0) return '–'
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
  return `${fixed(middle(ratios))} (${fixed(low)}–${fixed(high)})`
}

function median(runs, key) {
  return middle(runs.map((run) => run[key]).filter(Number.isFinite))
}

function middle(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b)
  const half = sorted.length / 2
  return sorted.length % 2 === 1 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2
}

function whole(number) {
  return Number.isFinite(number) ? Math.round(number).toLocaleString('en') : '–'
}

function fixed(number) {
  return Number.isFinite(number) ? number.toFixed(2) : '–'
}
