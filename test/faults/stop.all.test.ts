import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { newLocation, onEveryEngine, type DatabaseLocation } from '../targets.js'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const COMPANY = 'com.axelor.contact.db.Company'
const WORKERS = 12
const BEFORE_THE_SIGNAL = 100

const children: ChildProcess[] = []

async function startDemo(db: string) {
  const child = spawn(process.execPath, [main, 'demo', '--port', '0', '--db', db], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const exit = once(child, 'exit') as Promise<[number | null]>
  let output = ''
  for await (const chunk of child.stdout) {
    output += String(chunk)
    const url = /listening on http:\/\/localhost(:\d+)\n/.exec(output)?.[1]
    if (url !== undefined) return { child, exit, url: `http://127.0.0.1${url}` }
  }
  throw new Error(`the demo did not start: ${output}`)
}

/** Sends one create on a new connection; resolves with the status or the error code. */
function create(url: string, cookie: string, code: string): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { cookie, 'content-type': 'application/json' }
    const call = request(
      `${url}/ws/rest/${COMPANY}`,
      { method: 'PUT', headers, agent: false },
      (response) => {
        response.resume().once('end', () => {
          resolve(response.statusCode ?? 0)
        })
      },
    )
    call.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code ?? error.message)
    })
    call.end(JSON.stringify({ data: { code, name: code } }))
  })
}

test('on SIGTERM an idle connection does not delay the exit, and a slow reader gets complete responses', async () => {
  const location = await newLocation('sqlite')
  const { child, exit, url } = await startDemo(location.url)
  const client = await HttpClient.login(url, 'admin', 'admin')
  const model = 'com.axelor.contact.db.Contact'
  const { data } = await client.create(model, { notes: 'x'.repeat(1_000_000) })
  const { hostname, port } = new URL(url)
  const silent = connect(Number(port), hostname)
  await once(silent, 'connect')
  // Requests many responses on one connection without reading them: more than the system buffers.
  const slow = connect(Number(port), hostname)
  const head = `GET /ws/rest/${model}/${data.id} HTTP/1.1\r\nHost: localhost\r\nCookie: ${client.cookie}\r\n\r\n`
  slow.pause()
  slow.write(head.repeat(20))
  await sleep(500)
  child.kill('SIGTERM')
  await once(silent, 'close')
  let text = ''
  slow.setEncoding('utf8')
  slow.on('data', (chunk: string) => (text += chunk))
  slow.resume()
  await once(slow, 'close')
  expect(await exit).toEqual([0, null])
  const answers = text.split('HTTP/1.1 200 OK').slice(1)
  expect(answers.length).toBeGreaterThan(0)
  for (const answer of answers) expect(answer.length).toBeGreaterThan(1_000_000)
  location.remove()
})

onEveryEngine((engine) => {
  let location: DatabaseLocation
  beforeEach(async () => {
    location = await newLocation(engine)
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    location.remove()
  })

  test('SIGTERM under load: accepted requests are completed and answered, nothing else is stored, exit 0', async () => {
    const first = await startDemo(location.url)
    const { cookie } = await HttpClient.login(first.url, 'admin', 'admin')
    let [count, isStopping] = [0, false]
    const outcomes: (number | string)[] = []
    const work = async () => {
      for (let last: number | string = 200; last === 200;) {
        if (count === BEFORE_THE_SIGNAL && !isStopping) {
          isStopping = true
          first.child.kill('SIGTERM')
        }
        last = await create(first.url, cookie, `C${++count}`)
        outcomes.push(last)
      }
    }
    await Promise.all(Array.from({ length: WORKERS }, work))
    expect(await first.exit).toEqual([0, null])
    const answered = outcomes.filter((outcome) => outcome === 200).length
    const rejected = outcomes.filter(
      (outcome) => outcome === 'ECONNREFUSED' || outcome === 'ECONNRESET',
    ).length
    expect(answered).toBeGreaterThanOrEqual(BEFORE_THE_SIGNAL - WORKERS)
    expect(outcomes).toHaveLength(answered + rejected)

    const second = await startDemo(location.url)
    const client = await HttpClient.login(second.url, 'admin', 'admin')
    // The companies of the sample have addresses.
    const made = await client.find(COMPANY, { limit: 0, filter: 'addresses is empty' })
    expect(made.total).toBe(answered)
    second.child.kill('SIGTERM')
    expect(await second.exit).toEqual([0, null])
  })
})
