// A folder that cannot be written: the error names the folder, and the database only if it lies in it.
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { ContentFolder } from '../../src/cli/data/content-folder.js'
import { describeFileError } from '../../src/cli/file-error.js'
import { openDatabase } from '../../src/store/open.js'
import { StagingArea } from '../../src/store/engine/staging.js'
import { asNobody } from '../unprivileged.js'
import { newLocation, catchError, type Engine } from '../targets.js'

const TEMPORARY = {
  kind: 'busy',
  message: 'The folder for temporary files (TMPDIR) is not writable; nothing was changed',
}
const READ_ONLY = { kind: 'busy', message: 'The database is read-only; nothing was changed' }

const scratch = mkdtempSync(path.join(tmpdir(), 'verso-shut-'))
const shut = path.join(scratch, 'shut')
mkdirSync(path.join(shut, 'files'), { recursive: true })
for (const folder of [path.join(shut, 'files'), shut]) chmodSync(folder, 0o555)
const missing = path.join(scratch, 'missing')
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

const content = () => Readable.from([Buffer.from('content')])

describe.each([
  ['may not be written', shut],
  ['is missing', missing],
])('a folder for temporary files that %s', (_, folder) => {
  test('a large answer is rejected with the folder for temporary files in the message', async () => {
    const staging = new StagingArea({ totalBytes: 1_000, queueTimeoutMs: 1_000 }, folder)
    const error = await catchError(asNobody(scratch, async () => Promise.resolve(staging.stage('answer'))))
    expect(error).toMatchObject(TEMPORARY)
    expect(staging.bytes).toBe(0)
  })

  test('an upload on PostgreSQL is rejected with the folder for temporary files in the message', async () => {
    expect(await uploadInto('postgres', folder)).toMatchObject(TEMPORARY)
  })
})

test('an upload on SQLite to a read-only folder is rejected as a read-only database', async () => {
  const error = await uploadInto('sqlite', tmpdir())
  expect(error).toMatchObject(READ_ONLY)
})

test('an export to a read-only folder fails with the message of the command', async () => {
  const put = asNobody(scratch, () => new ContentFolder(shut).put(content()))
  const error: unknown = await put.catch((reason: unknown) => reason)
  expect(describeFileError(error)).toMatch(/\.part: permission denied; choose another location/)
})

/** The error of an upload by a user who may write neither the folder of the database nor this one. */
async function uploadInto(engine: Engine, temporary: string) {
  const location = await newLocation(engine)
  vi.stubEnv('TMPDIR', temporary)
  const db = await openDatabase(location.url, { poolSize: 1, statementTimeoutMs: 10_000 })
  vi.unstubAllEnvs()
  const error = await catchError(asNobody(scratch, () => db.blobs.receive(content(), 1_000)))
  expect(db.blobs.countPending()).toBe(0)
  await db.close()
  location.remove()
  return error
}
