// docs/promises.json has the results of the lanes that have run; docs/promises.md is composed of it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { arch, cpus, platform, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { format, resolveConfig } from 'prettier'
import type { Lane, PromiseRow } from './lane.js'

const RESULTS = fileURLToPath(new URL('../../docs/promises.json', import.meta.url))
const PAGE = fileURLToPath(new URL('../../docs/promises.md', import.meta.url))

export interface LaneResult {
  /** Where the lane ran. */
  readonly machine: string
  readonly seconds: number
  readonly rows: readonly PromiseRow[]
}

export type LaneResults = Readonly<Record<string, LaneResult>>

export function describeMachine(engines: string): string {
  const gigabytes = Math.round(totalmem() / 1024 ** 3)
  return `${cpus().length} cores, ${gigabytes} GB, ${platform()} ${arch()}, Node ${process.version.slice(1)}, ${engines}`
}

export function readResults(): LaneResults {
  return existsSync(RESULTS) ? (JSON.parse(readFileSync(RESULTS, 'utf8')) as LaneResults) : {}
}

export function storeResult(lane: Lane, result: LaneResult): void {
  const results = { ...readResults(), [lane.name]: result }
  const sorted = Object.fromEntries(Object.entries(results).sort(([a], [b]) => a.localeCompare(b)))
  writeFileSync(RESULTS, `${JSON.stringify(sorted, undefined, 2)}\n`)
}

export async function writePage(lanes: readonly Lane[]): Promise<void> {
  writeFileSync(PAGE, await composePage(lanes, readResults()))
}

/** A promise without a result is "not run", never held. */
export async function composePage(lanes: readonly Lane[], results: LaneResults): Promise<string> {
  const rows = lanes.flatMap((lane) => lane.bars.map((bar) => composeRow(bar, results[lane.name])))
  const text = `# Promises

Each bar, what was measured, and whether it is held. \`npm run test:faults\` makes this page: it breaks the service while
clients write, and compares every answer with the change log and the records afterwards. The checker shares no code with
[\`verso prove\`](operations/prove.md). In each run it must also find defects that are put into its input on purpose.

\`\`\`sh faults
npm run test:faults -- --list
npm run test:faults -- kills
\`\`\`

A run of a lane replaces its rows. Without a name all lanes run, one after the other. \`--scale 0.1\` repeats the faults less
often, for a first look: it prints its rows and leaves this page as it is. Timings depend on the other programs that run.

| bar | measured | held |
| --- | --- | --- |
${rows.join('\n')}

## Lanes

| lane | how | minutes | needs | ran on |
| --- | --- | --- | --- | --- |
${lanes.map((lane) => composeLane(lane, results[lane.name])).join('\n')}
`
  return format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' })
}

function composeRow(bar: string, result: LaneResult | undefined): string {
  const row = result?.rows.find((each) => each.bar === bar)
  if (!row) return `| ${bar} | not run | not run |`
  return `| ${bar} | ${row.measured} | ${row.isHeld ? 'yes' : '**no**'} |`
}

function composeLane({ name, description, minutes, needs }: Lane, result: LaneResult | undefined): string {
  return `| \`${name}\` | ${description} | ${minutes} | ${needs ?? ''} | ${result?.machine ?? 'not run'} |`
}
