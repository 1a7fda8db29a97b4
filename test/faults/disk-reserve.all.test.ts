// SQLite on a full disk: starts, reads, logins and deletes work in the room of the reserve, and writes resume when there is room.
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { cleanUpAfterwards, MAIN, PASSWORD, start } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { createMutantProgram, type Mistake } from '../mutants/program.js'
import { ANY_FAILURE } from '../server-failures.js'
import { exchange, type Answer, type Session } from './load-client.js'
import { mountSmallDisk, removeSmallDisks, type SmallDisk } from './small-disk.js'

const MODELS = path.join(import.meta.dirname, '../../examples/contacts')
const CONTACTS = '/ws/rest/com.axelor.contact.db.Contact'
const DISK_MB = 96
const RESERVE_BYTES = 8 * 1024 * 1024
const KB = 1024
const BIG_TEXT = 'x'.repeat(100 * KB)
const RECORDS = 40
/** More necessary writes than needed, and few enough for the room of the reserve. */
const NECESSARY_WRITES = 10
const WRITABLE_WITHIN_MS = 1_000

cleanUpAfterwards()
afterAll(removeSmallDisks)
const programs = mkdtempSync(path.join(tmpdir(), 'verso-reserve-'))
afterAll(() => {
  rmSync(programs, { recursive: true })
})

const probe = mountSmallDisk(1)
probe?.remove()
const canMount = probe !== undefined
if (!canMount) console.warn('Nothing can be mounted here: a full disk with a reserve is not tested')

class FullDisk {
  readonly disk: SmallDisk
  readonly file: string

  constructor() {
    const disk = mountSmallDisk(DISK_MB)
    if (!disk) throw new Error('a moment ago a disk could be mounted')
    this.disk = disk
    this.file = path.join(disk.folder, 'verso.db')
  }

  get #ballast(): string {
    return path.join(this.disk.folder, 'ballast')
  }

  /** Another program writes until nothing fits. */
  fill(): void {
    const descriptor = openSync(this.#ballast, 'a')
    try {
      for (const size of [256 * KB, 4 * KB, 1]) writeUntilFull(descriptor, Buffer.alloc(size, 1))
    } finally {
      closeSync(descriptor)
    }
  }

  makeRoom(): void {
    rmSync(this.#ballast)
  }

  get reserveBytes(): number {
    return statSync(`${this.file}.reserve`, { throwIfNoEntry: false })?.size ?? 0
  }

  async start(main = MAIN) {
    const flags = ['--models', MODELS, '--db', `sqlite:${this.file}`, '--disk-reserve', String(RESERVE_BYTES)]
    const admin = { VERSO_ADMIN_PASSWORD: PASSWORD }
    return start(['serve', ...flags, '--port', '0'], admin, ANY_FAILURE, main)
  }
}

function writeUntilFull(descriptor: number, bytes: Buffer): void {
  for (;;) {
    try {
      if (writeSync(descriptor, bytes) < bytes.length) return
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return
      throw error
    }
  }
}

async function login(url: string): Promise<Answer> {
  return exchange({ url, cookie: '' }, 'POST', '/callback', { username: 'admin', password: PASSWORD })
}

async function create(session: Session, fullName = BIG_TEXT): Promise<Answer> {
  return exchange(session, 'PUT', CONTACTS, { data: { lastName: 'A', fullName } })
}

async function isWritable(session: Session): Promise<unknown> {
  const { body } = await exchange(session, 'GET', '/readyz')
  return (body.data as [{ writable: boolean; reason?: string }])[0]
}

const FULL = { writable: false, problem: 'full', reason: expect.stringMatching(/disk is full/) as string }

/** Starts a service with records on a disk that then fills up. */
async function fullService(main?: string) {
  const disk = new FullDisk()
  const service = await disk.start(main)
  const { cookie } = await HttpClient.login(service.url, 'admin', PASSWORD)
  const session = { url: service.url, cookie }
  for (let made = 0; made < RECORDS; made++) expect((await create(session, 'small')).status).toBe(200)
  await vi.waitFor(() => {
    expect(disk.reserveBytes).toBe(RESERVE_BYTES)
  }, 20_000)
  disk.fill()
  return { disk, service, session }
}

/** Sends requests that a full disk must permit and others that it must reject. Returns a sentence for each wrong response. */
async function violationsOf(session: Session): Promise<string[]> {
  const violations: string[] = []
  const expectStatus = (what: string, status: number, { status: actual, body }: Answer) => {
    if (actual !== status) violations.push(`${what}: ${actual} ${JSON.stringify(body.data)}`)
  }
  let refused = 0
  for (let tries = 0; tries < 200 && refused < 5; tries++) {
    const { status, headers } = await create(session)
    if (status === 507) refused++
    if (status === 507 && headers['retry-after'] === undefined) violations.push('a 507 without Retry-After')
    if (![200, 507].includes(status)) violations.push(`a create was answered with ${status}`)
  }
  if (refused < 5) violations.push('the disk is never full')
  expectStatus('a small create', 507, await create(session, 'small'))
  const ready = JSON.stringify(await isWritable(session))
  if (!/"writable":false.*disk is full/.test(ready)) violations.push(`/readyz says ${ready}`)
  expectStatus('/readyz?write', 503, await exchange(session, 'GET', '/readyz?write'))
  expectStatus('a page', 200, await exchange(session, 'GET', `${CONTACTS}?limit=5`))
  expectStatus('a search', 200, await exchange(session, 'GET', `${CONTACTS}?q=small&sortBy=-lastName`))
  for (let id = 1; id <= NECESSARY_WRITES; id++) {
    expectStatus('a delete', 200, await exchange(session, 'DELETE', `${CONTACTS}/${id}?version=0`))
    expectStatus('a login', 200, await login(session.url))
  }
  const [first, second, third] = [1, 2, 3].map((index) => NECESSARY_WRITES + index)
  const records = [{ id: first, version: 0 }]
  expectStatus('deletes', 200, await exchange(session, 'POST', `${CONTACTS}/removeAll`, { records }))
  const model = 'com.axelor.contact.db.Contact'
  const deletes = [{ op: 'delete', model, id: second, version: 0 }]
  expectStatus('a batch of deletes', 200, await exchange(session, 'POST', '/ws/batch', { requests: deletes }))
  const mixed = [
    { op: 'delete', model, id: third, version: 0 },
    { op: 'create', model, data: { lastName: 'B' } },
  ]
  expectStatus(
    'a batch with a create',
    507,
    await exchange(session, 'POST', '/ws/batch', { requests: mixed }),
  )
  return violations
}

describe.runIf(canMount)('SQLite on a full disk', () => {
  test('reads, logins and deletes succeed, other writes get 507, and room makes the service writable within a second', async () => {
    const { disk, service, session } = await fullService()
    expect(await violationsOf(session)).toEqual([])
    expect(existsSync(`${disk.file}.reserve`)).toBe(false)
    disk.makeRoom()
    const sinceMs = performance.now()
    await vi.waitFor(async () => expect((await create(session, 'small')).status).toBe(200), {
      timeout: 20_000,
      interval: 10,
    })
    expect(performance.now() - sinceMs).toBeLessThan(WRITABLE_WITHIN_MS)
    expect(disk.reserveBytes).toBe(RESERVE_BYTES)
    await vi.waitFor(async () => expect(await isWritable(session)).toEqual({ writable: true }), 20_000)
    const lines = service.log().split('\n')
    expect(lines.filter((line) => line.includes('the disk is full: reads'))).toHaveLength(1)
    expect(lines.filter((line) => line.includes('accepts writes again'))).toHaveLength(1)
    service.child.kill('SIGTERM')
    expect(await service.ended()).toBe(0)
    disk.disk.remove()
  })

  test.for([
    ['SIGTERM', 'with'],
    ['SIGKILL', 'with'],
    ['SIGKILL', 'without'],
  ] as const)(
    'the service starts on a full disk after %s %s a reserve, answers logins and deletes, and resumes writes when there is room',
    async ([signal, reserve]) => {
      const { disk, service, session } = await fullService()
      // Writes that met the full disk have released the reserve. Most of its room remains.
      if (reserve === 'without') expect(await violationsOf(session)).toEqual([])
      service.child.kill(signal)
      await service.ended()
      if (reserve === 'with') disk.fill()
      const again = await disk.start()
      const { cookie } = session
      const later = { url: again.url, cookie }
      expect((await exchange(later, 'GET', `${CONTACTS}?limit=5`)).status).toBe(200)
      expect((await login(again.url)).status).toBe(200)
      expect((await exchange(later, 'DELETE', `${CONTACTS}/30?version=0`)).status).toBe(200)
      // Without one, the room that was left may suffice for a smaller reserve. Then the new process is writable.
      if (reserve === 'with')
        await vi.waitFor(async () => expect(await isWritable(later)).toEqual(FULL), 20_000)
      disk.makeRoom()
      await vi.waitFor(async () => expect(await isWritable(later)).toEqual({ writable: true }), 20_000)
      expect((await create(later)).status).toBe(200)
      again.child.kill('SIGTERM')
      expect(await again.ended()).toBe(0)
      disk.disk.remove()
    },
  )

  const MUTANTS: Readonly<Record<string, Mistake>> = {
    'keeps the reserve on a full disk': {
      file: 'store/sqlite/disk/disk-reserve.js',
      from: 'if (this.#readSize() === 0)\n            return false',
      to: 'return false',
    },
    'lets every write take the room of the reserve': {
      file: 'store/sqlite/connections.js',
      from: 'requireHealthy(isNecessary ||',
      to: 'requireHealthy(true ||',
    },
    'does not run a write again that released the reserve': {
      file: 'store/sqlite/database.js',
      from: 'if (!isNecessary || wasFull || !this.#isFull())',
      to: 'if (true)',
    },
    'makes a reserve without content': {
      file: 'store/sqlite/disk/disk-reserve.js',
      from: 'await handle.appendFile(randomFillSync(chunk).subarray(0, to - bytes));',
      to: 'await handle.truncate(to);',
    },
  }

  test.for(Object.keys(MUTANTS))('the mutant that %s is caught', async (name) => {
    const mistake = MUTANTS[name]
    if (!mistake) throw new Error(name)
    const main = path.join(createMutantProgram(programs, mistake), 'cli/main.js')
    const { disk, service, session } = await fullService(main)
    const { status } = await exchange(session, 'DELETE', `${CONTACTS}/40?version=0`)
    const violations = await violationsOf(session)
    expect(status !== 200 || violations.length > 0).toBe(true)
    service.child.kill('SIGKILL')
    await service.ended()
    disk.disk.remove()
  })
})
