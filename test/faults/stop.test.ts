import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { newPlace, onEveryEngine, type Place } from '../targets.js'

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

/** One create on a connection of its own; answers the status, or the code of the error. */
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

onEveryEngine((engine) => {
  let place: Place
  beforeEach(async () => {
    place = await newPlace(engine)
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    place.remove()
  })

  test('SIGTERM under load: what was accepted is finished and answered, nothing else is stored, exit 0', async () => {
    const first = await startDemo(place.url)
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
    const refused = outcomes.filter(
      (outcome) => outcome === 'ECONNREFUSED' || outcome === 'ECONNRESET',
    ).length
    expect(answered).toBeGreaterThanOrEqual(BEFORE_THE_SIGNAL - WORKERS)
    expect(outcomes).toHaveLength(answered + refused)

    const second = await startDemo(place.url)
    const client = await HttpClient.login(second.url, 'admin', 'admin')
    expect((await client.find(COMPANY, { limit: 0 })).total).toBe(answered)
    second.child.kill('SIGTERM')
    expect(await second.exit).toEqual([0, null])
  })
})
