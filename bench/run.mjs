// npm run bench: measures Verso beside other servers, and kinds of clients beside each other, in interleaved rounds. It
// reports and asserts nothing; see docs/operations/performance.md.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { measureClients } from './clients.mjs'
import { readOptions } from './options.mjs'
import { isFolderInMemory, runBenchmark, stopServers } from './processes.mjs'
import { describeMachine } from './report.mjs'
import { measureSideBySide } from './side-by-side.mjs'
import { printMarkdown, printText, writeSection } from './table.mjs'
import { buildIfMissing } from './verso.mjs'

/** Marker of each section in a Markdown file. */
const SECTIONS = {
  sideBySide: { marker: 'bench', measure: measureSideBySide },
  clients: { marker: 'clients', measure: measureClients },
}

function printReport(machine, { about, tables, notes }) {
  console.log(
    [machine, about, '', ...tables.map((table) => `${printText(table)}\n`), ...notes, ''].join('\n'),
  )
}

function writeReport(file, marker, { machine, about, chart, tables, notes }) {
  const list = notes.map((note) => `- ${note}`).join('\n')
  const parts = [machine, about, chart, ...tables.map(printMarkdown), list]
  writeSection(file, marker, parts.filter(Boolean).join('\n\n'))
}

await runBenchmark(async () => {
  const options = readOptions(process.argv.slice(2))
  await buildIfMissing()
  for (const [name, flags] of Object.entries(options)) {
    const machine = describeMachine()
    const { marker, measure } = SECTIONS[name]
    const report = await measure(flags)
    await stopServers()
    if (isFolderInMemory())
      report.notes.push(
        'the databases were in memory, so commits were free: set TMPDIR to a folder on a disk',
      )
    printReport(machine, report)
    const { markdown, svg } = flags
    if (svg !== undefined && report.drawing) writeFileSync(svg, report.drawing(machine.split(';')[0]))
    if (markdown === undefined) continue
    const picture = svg && report.drawing && path.relative(path.dirname(markdown), svg)
    const chart = picture && `![Requests a second relative to a static answer](${picture})`
    writeReport(markdown, marker, { machine, chart, ...report })
  }
})
