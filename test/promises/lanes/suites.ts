// Lanes that are files of the second tier of tests. Each of them has a checker and mutants of its own, which it must catch.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))

interface Suite {
  readonly name: string
  readonly description: string
  readonly minutes: number
  /** The promise, and the files in test/faults that prove it. */
  readonly bars: Readonly<Record<string, readonly string[]>>
  readonly needs?: string
  readonly needsRoot?: boolean
}

const SUITES: readonly Suite[] = [
  {
    name: 'backup',
    description:
      'Backups beside writers, kills of backup and restore at random moments, random damages of backups, scheduled backups.',
    minutes: 10,
    bars: {
      'backup under load: the restored state existed, and nothing acknowledged before the start is missing': [
        'backup-load',
      ],
      'kills during backup and restore: no half backup and no half restore is taken for a whole one': [
        'backup-kills',
      ],
      'random damages of a backup are all refused': ['backup-damage'],
      'scheduled backups: each is restored and verified, the newest stay, a failed one is reported': [
        'scheduled-backups',
      ],
    },
  },
  {
    name: 'disk',
    description: 'A tmpfs that is full, and grows again.',
    minutes: 5,
    bars: {
      'full disk: start, reads, login and DELETE succeed, other writes get 507, writable within 1 s of room':
        ['disk-reserve'],
      'full disk: no acknowledged write is lost, and no refused one stored': ['full-disk'],
    },
    needs: 'root: it mounts a tmpfs',
    needsRoot: true,
  },
  {
    name: 'damage',
    description:
      'Bytes of database files flipped, WAL removed after a kill, pages damaged while the service does not run.',
    minutes: 5,
    bars: {
      'damage is reported and no write goes into a damaged database': ['damage'],
      'a lost WAL is refused at start, and an unclean stop is followed by a check of all pages': [
        'unclean-stop',
      ],
    },
  },
  {
    name: 'clocks',
    description: 'Nodes whose clocks are hours apart, and are set while they run.',
    minutes: 4,
    bars: { 'wrong clocks hide, remove and reorder nothing, and end no session': ['clock-nodes'] },
  },
  {
    name: 'failover',
    description:
      'A standby that becomes the primary, sessions that turn read-only, a server without free connections.',
    minutes: 4,
    bars: { 'failover: read-only connections are replaced within 5 s': ['failover'] },
  },
]

export const SUITE_LANES: readonly Lane[] = SUITES.map(createSuiteLane)

function createSuiteLane({ name, description, minutes, bars, needs, needsRoot = false }: Suite): Lane {
  return {
    name,
    description: `${description} Tests in test/faults.`,
    minutes,
    bars: Object.keys(bars),
    needs,
    findObstacle: () => (needsRoot && process.getuid?.() !== 0 ? `needs ${needs ?? 'root'}` : undefined),
    run: async (options) =>
      Promise.resolve(Object.entries(bars).map(([bar, files]) => runTests(bar, files, options))),
  }
}

interface TestReport {
  readonly numTotalTests: number
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

function runTests(bar: string, names: readonly string[], { log, scale }: LaneOptions): PromiseRow {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-suite-'))
  try {
    const output = path.join(folder, 'report.json')
    const files = names.map((name) => `test/faults/${name}.all.test.ts`)
    const args = [
      'vitest',
      'run',
      '--config',
      'vitest.all.config.ts',
      '--reporter=json',
      `--outputFile=${output}`,
    ]
    const env = { ...process.env, ...(scale >= 1 ? { FAULT_REPEATS: 'promised' } : {}) }
    spawnSync('npx', [...args, ...files], { cwd: root, stdio: 'ignore', env })
    const report = JSON.parse(readFileSync(output, 'utf8')) as TestReport
    const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults)
    for (const { status, fullName } of tests) if (status !== 'passed') log(`${status}: ${fullName}`)
    const mutants = tests.filter(({ fullName }) => /mutant|is caught/.test(fullName))
    const caught = mutants.filter(({ status }) => status === 'passed').length
    return {
      bar,
      measured: `${report.numPassedTests - caught} of ${report.numTotalTests - mutants.length} tests passed; control: ${caught} of ${mutants.length} defects found`,
      isHeld: tests.length > 0 && report.numPassedTests === report.numTotalTests,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
