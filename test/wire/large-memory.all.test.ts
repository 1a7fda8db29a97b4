// A real server, 600 records with texts of 1 MiB, and clients that request them and read nothing.
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { expect, test } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import { cleanUpAfterwards, newDatabase, start } from '../cli/program.js'
import { envelope, json, openSession, addressOf, send } from './exchange.js'

/** The records have 600 MB. A busy machine collects garbage late. */
const MAX_RSS_MB = 400
const COUNT = 600
const PATH = '/ws/rest/com.axelor.contact.db.Contact'
const DEMO_LOGIN = JSON.stringify({ username: 'admin', password: 'admin' })

cleanUpAfterwards()

/** Peak memory of a process and its children. */
function peakMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(/\s+/)
    .filter(Boolean)
  const own = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024
  return children.reduce((sum, child) => sum + peakMb(Number(child)), own)
}

/** Bypasses the service, which would take a minute; the counters do not matter here. */
async function fill(url: string): Promise<void> {
  const db = await openDatabase(url, { poolSize: 1, statementTimeoutMs: 60_000 })
  const table = '"com.axelor.contact.db.Contact"'
  await db.transaction((tx) =>
    tx.run(
      `insert into ${table} ("version", "firstName", "notes") with recursive "n" ("i") as ` +
        `(select 1 union all select "i" + 1 from "n" where "i" < ${COUNT}) ` +
        `select 0, 'N' || "i", replace(hex(zeroblob(524288)), '0', 'x') from "n"`,
    ),
  )
  await db.close()
}

test('memory stays below the limit while clients do not read large responses', async () => {
  const url = newDatabase()
  const args = ['demo', '--db', url, '--port', '0', '--sample', '0']
  const first = await start(args)
  first.child.kill('SIGTERM')
  await first.ended()
  await fill(url)
  const server = await start(args)
  const cookie = await openSession(server.url, {}, DEMO_LOGIN)
  const headers = { cookie, 'content-type': 'application/json' }
  const asked = [
    { path: `${PATH}?fields=notes&limit=1000`, headers: { cookie } },
    { path: `${PATH}/search`, method: 'POST', headers, body: '{"fields":["notes"],"limit":1000}' },
  ]
  for (const question of asked) {
    const rejected = await send(server.url, question)
    expect([rejected.status, envelope(rejected).data], rejected.text.slice(0, 500)).toEqual([
      413,
      expect.objectContaining({ kind: 'too-large', limit: 31 }),
    ])
  }
  const largest = `${PATH}?fields=notes&limit=31`
  const sockets = Array.from({ length: 6 }, () => {
    const socket = net.connect(addressOf(server.url))
    socket.pause().write(`GET ${largest} HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`)
    return socket
  })
  // Each response has begun; large ones are produced one after the other.
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('readable', resolve))))
  const other = await send(server.url, { path: `${PATH}/1`, headers: { cookie } })
  expect(other.status).toBe(200)
  const read = await send(server.url, { path: largest, headers: { cookie } })
  expect((json(read) as { data: unknown[] }).data).toHaveLength(31)
  expect(peakMb(server.child.pid ?? 0)).toBeLessThan(MAX_RSS_MB)
  for (const socket of sockets) socket.destroy()
})
