// `kill -9` during uploads, replacements and removals: after a restart every record has its content, and there is no orphaned content.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { auditFiles } from '../file-audit.js'
import { HttpClient } from '../http-client.js'
import {
  onEveryEngine,
  PASSWORD,
  preparedLocation,
  USERNAME,
  type Engine,
  type DatabaseLocation,
} from '../targets.js'
import type * as mutants from '../mutants/records.js'
import { POINTS, type Point } from './failpoints.js'
import { startServerProcess, type ServerProcess } from './server-process.js'
import { untilNobodyWrites } from './kills.js'

const MODEL = 'doc.Paper'

/** These points do not exist where the database stores the content. */
const ON_DISK_ONLY: readonly Point[] = ['received', 'dropped', 'swept', 'settled']

interface Write {
  readonly what: string
  readonly run: (records: Records, paper: WireRecord) => Promise<unknown>
  /** The points at which the process dies. */
  readonly points: readonly Point[]
  /** The versions of all papers after a successful write. */
  readonly done: readonly number[]
}

const CREATE: Write = {
  what: 'an upload that creates a record',
  run: (records) => put(records, { title: 'New' }),
  points: ['receiving', 'received', 'stored', 'worked', 'committed', 'settled'],
  done: [0, 0],
}
const REPLACE: Write = {
  what: 'an upload that replaces a file',
  run: (records, { id, version }) => put(records, { id, version }),
  points: POINTS,
  done: [1],
}
const CLEAR: Write = {
  what: 'a clear of a file field',
  run: (records, { id, version }) => records.clear(MODEL, id, 'scan', { version }),
  points: ['worked', 'committed'],
  done: [1],
}
const REMOVE: Write = {
  what: 'a delete of a record',
  run: (records, { id }) => records.remove(MODEL, id),
  points: ['dropped', 'worked', 'committed', 'swept'],
  done: [],
}

onEveryEngine((engine) => {
  describe('a killed process', () => {
    let location: DatabaseLocation
    let server: ServerProcess
    beforeAll(async () => {
      location = await preparedLocation(engine)
      server = await startServerProcess(location.url)
    })
    afterAll(async () => {
      await server.kill()
      location.remove()
    })

    const cases = [CREATE, REPLACE, CLEAR, REMOVE].flatMap((write) =>
      write.points
        .filter((point) => engine === 'sqlite' || !ON_DISK_ONLY.includes(point))
        .map((point) => ({ ...write, point })),
    )
    test.for(cases)(
      'a process killed at $point of $what leaves consistent records and files',
      async ({ point, run, done }) => {
        await dieIn(server, point, run)
        server = await startServerProcess(location.url)
        const { violations, versions } = await look(location.url, engine)
        expect(violations).toEqual([])
        // Atomic: a committed write is complete, any other left nothing.
        const isDone = POINTS.indexOf(point) >= POINTS.indexOf('committed')
        expect(versions).toEqual(isDone ? done : [0])
      },
    )
  })
})

describe('mutants of the file store', () => {
  test('the mutant that does not clean up after a dead process is caught', async () => {
    const violations = await killBroken('sqlite', 'received', CREATE, { firstMutant: 'withoutRecovery' })
    expect(violations).toContainEqual(expect.stringMatching(/is there, and has no row/))
  })

  test('the mutant that removes content before the commit is caught', async () => {
    const violations = await killBroken('sqlite', 'worked', REPLACE, { mutant: 'removesBeforeCommit' })
    expect(violations).toEqual([expect.stringMatching(/has no content/)])
  })

  test('the mutant that stores content after the commit is caught', async () => {
    const violations = await killBroken('postgres', 'committed', CREATE, { mutant: 'storesAfterCommit' })
    expect(violations).toContainEqual(expect.stringMatching(/has no content/))
  })
})

/** Prepares one record with a file, then runs a write during which the server dies. */
async function dieIn(server: ServerProcess, point: Point, write: Write['run']): Promise<void> {
  const client = await HttpClient.login(server.url, USERNAME, PASSWORD)
  for (const { id } of (await client.find(MODEL)).data) await client.remove(MODEL, id)
  const { data: paper } = await put(client, { title: 'Old' })
  await server.dieAt(point)
  await expect(write(client, paper), point).rejects.toThrow(/fetch failed/)
  await server.gone
}

interface Look {
  readonly violations: readonly string[]
  /** The versions of the existing papers. */
  readonly versions: readonly number[]
}

async function look(url: string, engine: Engine): Promise<Look> {
  const db = await openDatabase(url, { poolSize: 3, statementTimeoutMs: 10_000 })
  try {
    if (engine === 'postgres') await untilNobodyWrites(db.reader)
    const rows = await db.reader.all(`select "version" from "${MODEL}" order by "id"`)
    const { violations } = await auditFiles(db, url)
    return { violations, versions: rows.map((row) => Number(row['version'])) }
  } finally {
    await db.close()
  }
}

interface Broken {
  readonly mutant?: keyof typeof mutants
  readonly firstMutant?: keyof typeof mutants
}

async function killBroken(
  engine: Engine,
  point: Point,
  { run }: Write,
  { mutant, firstMutant }: Broken,
): Promise<readonly string[]> {
  const location = await preparedLocation(engine)
  const first = await startServerProcess(location.url, mutant, firstMutant)
  await dieIn(first, point, run)
  const second = await startServerProcess(location.url, mutant, firstMutant)
  try {
    return (await look(location.url, engine)).violations
  } finally {
    await second.kill()
    location.remove()
  }
}

async function put(records: Records, data: object) {
  const content = Readable.from([randomBytes(300_000)])
  return records.upload(MODEL, { data, field: 'scan', name: 'scan.bin', content })
}
