// Runs lanes and composes docs/promises.md: npm run test:faults -- [lane …] [--scale 1] [--list]
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { DatabaseSync } from '@photostructure/sqlite'
import { prepareBinaries } from '../postgres-binaries.js'
import { LANES } from './lanes.js'
import { describeMachine, storeResult, writePage } from './page.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { scale: { type: 'string', default: '1' }, list: { type: 'boolean', default: false } },
})
const say = (line: string) => process.stdout.write(`${line}\n`)
const unknown = positionals.filter((name) => LANES.every((lane) => lane.name !== name))
const scale = Number(values.scale)

// The lanes clean up when the process exits.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))

if (values.list) {
  for (const { name, minutes, needs, description } of LANES)
    say(`${name} (${minutes} min${needs === undefined ? '' : `, needs ${needs}`}): ${description}`)
} else if (unknown.length > 0 || !(scale > 0)) {
  say(
    `Unknown lane or scale: ${[...unknown, values.scale].join(' ')}. The lanes are ${LANES.map(({ name }) => name).join(', ')}.`,
  )
  process.exitCode = 1
} else {
  const built = spawnSync('npm', ['run', '--silent', 'build'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (built.status !== 0) throw new Error('the build failed')
  for (const lane of LANES.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
    const obstacle = lane.findObstacle()
    if (obstacle !== undefined) {
      say(`${lane.name}: not run: ${obstacle}`)
      process.exitCode = 1
      continue
    }
    const startMs = performance.now()
    const rows = await lane.run({ scale, log: (line) => say(`${lane.name}: ${line}`) })
    const seconds = Math.round((performance.now() - startMs) / 1_000)
    for (const { bar, measured, isHeld } of rows) {
      say(`${isHeld ? 'held    ' : 'NOT HELD'} ${bar}\n         ${measured}`)
      if (!isHeld) process.exitCode = 1
    }
    // A short run is a first look: it proves nothing.
    if (scale >= 1) storeResult(lane, { machine: describeMachine(readEngineVersions()), seconds, rows })
  }
  await writePage(LANES)
}

function readEngineVersions(): string {
  const memory = new DatabaseSync(':memory:')
  const [row] = memory.prepare('select sqlite_version() as version').all() as { version: string }[]
  memory.close()
  const { postgres } = prepareBinaries('', undefined)
  const { stdout } = spawnSync(postgres, ['--version'], { encoding: 'utf8' })
  const version = /\d[\d.]*/.exec(stdout)?.[0]
  return `SQLite ${row?.version ?? 'unknown'}, PostgreSQL ${version ?? 'unknown'}`
}
