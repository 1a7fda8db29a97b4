// Files under concurrency: two processes, two nodes, downloads during removal, a full disk.
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import type { VersoError } from '../../src/errors.js'
import { openDatabase } from '../../src/store/open.js'
import type { Download, Records } from '../../src/wire.js'
import { auditFiles, blobFilesIn, filesFolder } from '../file-audit.js'
import { HttpClient } from '../http-client.js'
import {
  enter,
  onEveryTarget,
  PASSWORD,
  preparedLocation,
  catchError,
  startService,
  USERNAME,
} from '../targets.js'
import { onNodes } from './nodes.js'
import { startServerProcess } from './server-process.js'
import { mountSmallDisk, removeSmallDisks } from './small-disk.js'

const MODEL = 'doc.Folder'
const OPTIONS = { poolSize: 3, statementTimeoutMs: 10_000 }

afterAll(removeSmallDisks)

test('a second process on the same SQLite file does not disturb an upload in progress', async () => {
  const location = await preparedLocation('sqlite')
  const folder = filesFolder(location.url) ?? ''
  const first = await startServerProcess(location.url)
  const { cookie } = await HttpClient.login(first.url, USERNAME, PASSWORD)
  const content = randomBytes(200_000)
  const upload = beginUpload(first.url, cookie, content)
  while (!blobFilesIn(folder).some((name) => name.startsWith('incoming'))) await sleep(2)
  const second = await startServerProcess(location.url)
  expect(blobFilesIn(folder)).toHaveLength(1)
  expect(await upload.finish()).toMatch(/^HTTP\/1.1 200 /)
  const other = await HttpClient.login(second.url, USERNAME, PASSWORD)
  expect((await wholeOf(await other.download(MODEL, 1, 'cover')))?.equals(content)).toBe(true)
  const db = await openDatabase(location.url, OPTIONS)
  expect(await auditFiles(db, location.url)).toEqual({ held: 1, violations: [] })
  await Promise.all([db.close(), first.kill(), second.kill()])
  location.remove()
})

test('two nodes on one PostgreSQL share their files', async () => {
  await onNodes('postgres', {}, async ({ first, second }) => {
    const content = randomBytes(1_000_000)
    const { data } = await put(first.client, {}, content)
    expect((await wholeOf(await second.client.download(MODEL, data.id, 'cover')))?.equals(content)).toBe(true)
    await second.client.clear(MODEL, data.id, 'cover', { version: 0 })
    expect(await first.client.download(MODEL, data.id, 'cover')).toBeUndefined()
  })
})

onEveryTarget((engine, transport) => {
  test('a download during removal of its record is complete or fails, and is never truncated', async () => {
    const service = await startService(engine)
    const records = await enter(service, transport)
    const content = randomBytes(20_000_000)
    const { data } = await put(records, {}, content)
    const file = await records.download(MODEL, data.id, 'cover')
    await records.remove(MODEL, data.id)
    const outcome = await wholeOf(file).then(
      (bytes) => (bytes?.equals(content) === true ? 'whole' : `cut to ${bytes?.length ?? 0}`),
      () => 'failed',
    )
    expect(engine === 'sqlite' ? ['whole'] : ['whole', 'failed']).toContain(outcome)
    expect((await auditFiles(service.app.db, service.location.url)).violations).toEqual([])
    await service.close()
  })

  test('of concurrent uploads to one record exactly one succeeds, the others are conflicts', async () => {
    const service = await startService(engine)
    const records = await enter(service, transport)
    const { data } = await records.create(MODEL, { title: 'One' })
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        put(records, { id: data.id, version: 0 }, Buffer.from(`content ${index}`)).then(
          () => index,
          (error: unknown) => (error as VersoError).kind,
        ),
      ),
    )
    const done = outcomes.filter((outcome) => typeof outcome === 'number')
    expect(done).toHaveLength(1)
    expect(outcomes.filter((outcome) => outcome === 'conflict')).toHaveLength(7)
    const held = await wholeOf(await records.download(MODEL, data.id, 'cover'))
    expect(held?.toString()).toBe(`content ${done[0] ?? ''}`)
    expect(await auditFiles(service.app.db, service.location.url)).toEqual({ held: 1, violations: [] })
    await service.close()
  })
})

const disk = mountSmallDisk(8)
if (disk)
  test('an upload on a full disk is rejected with 507, leaves nothing, and succeeds once there is room', async () => {
    const location = { url: `sqlite:${disk.folder}/verso.db`, remove: () => undefined }
    const service = await startService('sqlite', { location, expects: ['storage-full'] })
    const records = await enter(service, 'http')
    const content = randomBytes(10_000_000)
    expect((await catchError(put(records, {}, content))).kind).toBe('storage-full')
    expect(blobFilesIn(filesFolder(location.url) ?? '')).toEqual([])
    expect((await records.find(MODEL)).total).toBe(0)
    disk.grow(64)
    const { data } = await put(records, {}, content)
    expect((await wholeOf(await records.download(MODEL, data.id, 'cover')))?.equals(content)).toBe(true)
    expect(await auditFiles(service.app.db, location.url)).toEqual({ held: 1, violations: [] })
    await service.close()
  })
else console.warn('Cannot mount a small disk: uploads to a full disk are not tested')

/** Sends the first half of a form; `finish` sends the rest. */
function beginUpload(url: string, cookie: string, content: Buffer) {
  const { hostname, port } = new URL(url)
  const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
  const body = Buffer.concat([Buffer.from(head), content, Buffer.from('\r\n--b--\r\n')])
  const lines = [
    `POST /ws/rest/${MODEL}/upload HTTP/1.1`,
    ...[`host: ${hostname}:${port}`, `cookie: ${cookie}`, 'connection: close'],
    ...['content-type: multipart/form-data; boundary=b', `content-length: ${body.length}`, '', ''],
  ]
  const socket = net.connect(Number(port), hostname)
  socket.write(lines.join('\r\n'))
  socket.write(body.subarray(0, body.length / 2))
  const finish = async () => {
    socket.write(body.subarray(body.length / 2))
    let answer = ''
    for await (const chunk of socket) answer += String(chunk)
    return answer
  }
  return { finish }
}

async function put(records: Records, data: object, content: Buffer) {
  return records.upload(MODEL, { data, name: 'a', content: Readable.from([content]) })
}

async function wholeOf(file: Download | undefined): Promise<Buffer | undefined> {
  if (!file) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of file.content) chunks.push(chunk)
  return Buffer.concat(chunks)
}
