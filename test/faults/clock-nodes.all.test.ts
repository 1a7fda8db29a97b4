// Three nodes in processes of their own on PostgreSQL: one clock is right, one two hours ahead, one two hours behind; and clocks are set while the
// nodes run.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { cleanUpAfterwards, scratch, verso } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { MARKED } from '../hooks/marking-models.js'
import { newLocation, PASSWORD, USERNAME } from '../targets.js'
import { startServerProcess, type ServerProcess } from './server-process.js'

cleanUpAfterwards()

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS
const MODELS = fileURLToPath(new URL('../hooks/marking-models.ts', import.meta.url))
const SHIFT_CLOCK = fileURLToPath(new URL('shift-clock.mjs', import.meta.url))
const PATIENTLY = { timeout: 60_000, interval: 200 }

class ShiftedNode {
  private constructor(
    readonly process: ServerProcess,
    private readonly file: string,
  ) {}

  static async start(db: string, shiftMs: number, more: { OWN_CLOCK?: string } = {}): Promise<ShiftedNode> {
    const file = path.join(scratch, `shift-${running.length}`)
    writeFileSync(file, String(shiftMs))
    const options = { MODELS, BACKGROUND: 'on', MARKS: marks, SHIFT: file, ...more }
    const node = new ShiftedNode(await startServerProcess(db, undefined, undefined, options), file)
    running.push(node)
    return node
  }

  get url(): string {
    return this.process.url
  }

  setClock(shiftMs: number): void {
    writeFileSync(this.file, String(shiftMs))
    this.process.shiftClock()
  }

  async warnings(): Promise<readonly string[]> {
    const { data } = (await (await fetch(`${this.url}/readyz`)).json()) as {
      data: [{ warnings?: readonly string[] }]
    }
    return data[0].warnings ?? []
  }

  /** The status of a read with a session that another node has made. */
  async statusWith({ cookie }: HttpClient): Promise<number> {
    return (await fetch(`${this.url}/ws/rest/${MARKED}`, { headers: { cookie } })).status
  }
}

let running: ShiftedNode[] = []
const marks = path.join(scratch, 'marks')
afterEach(async () => {
  for (const node of running) await node.process.kill()
  running = []
})

const countMarks = () => {
  const seqs = readFileSync(marks, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { seq: number }).seq)
  return { changes: new Set(seqs).size, runs: seqs.length }
}

test('nodes with wrong clocks keep sessions, the order of times, points in time, history and leases', async () => {
  const location = await newLocation('postgres')
  writeFileSync(marks, '')
  const nodes = [
    await ShiftedNode.start(location.url, 0),
    await ShiftedNode.start(location.url, 2 * HOUR_MS),
    await ShiftedNode.start(location.url, -2 * HOUR_MS),
  ]
  const [right, ahead, behind] = nodes
  if (!right || !ahead || !behind) throw new Error('a node has not started')
  const clients = await Promise.all(nodes.map(({ url }) => HttpClient.login(url, USERNAME, PASSWORD)))
  const startedMs = Date.now()
  let created = 0
  const writeOnAll = async () => {
    for (let round = 0; round < 3; round++)
      for (const client of clients) {
        await client.create(MARKED, { title: `t${++created}` })
      }
  }
  const check = async () => {
    for (const client of clients) for (const node of nodes) expect(await node.statusWith(client)).toBe(200)
    const [first] = clients
    const { data } = (await first?.changes({ limit: 500 })) ?? { data: [] }
    const times = data.filter(({ model }) => model === MARKED).map(({ on }) => on)
    expect(times).toHaveLength(created)
    expect(times).toEqual([...times].sort())
    // No time is hours away.
    expect(Date.parse(times[0] ?? '')).toBeGreaterThan(startedMs - 60_000)
    expect(Date.parse(times.at(-1) ?? '')).toBeLessThan(Date.now() + 60_000)
    const asOf = new Date().toISOString()
    for (const client of clients) expect((await client.find(MARKED, { asOf })).total).toBe(created)
  }
  await writeOnAll()
  await check()
  expect(await right.warnings()).toEqual([])
  expect(await ahead.warnings()).toEqual([
    expect.stringMatching(/ is 7200 s ahead of the clock of the database/),
  ])
  expect(await behind.warnings()).toEqual([
    expect.stringMatching(/ is 7200 s behind the clock of the database/),
  ])

  ahead.setClock(-2 * HOUR_MS)
  behind.setClock(200 * DAY_MS)
  await writeOnAll()
  await check()
  await expect.poll(() => behind.warnings(), PATIENTLY).toEqual([expect.stringMatching(/ s ahead of /)])

  const shift = path.join(scratch, 'shift-command')
  writeFileSync(shift, String(200 * DAY_MS))
  const variables = { SHIFT: shift, NODE_OPTIONS: `--import=${SHIFT_CLOCK}` }
  const args = ['history', 'compact', '--retention', '90d', '--db', location.url]
  expect(await verso(args, '', variables)).toMatchObject({ code: 0 })
  await check()

  ahead.setClock(0)
  behind.setClock(0)
  for (const node of nodes) await expect.poll(() => node.warnings(), PATIENTLY).toEqual([])
  await writeOnAll()
  await check()
  await expect.poll(countMarks, PATIENTLY).toEqual({ changes: created, runs: created })
  for (const { process } of nodes) await process.kill()
  location.remove()
})

test('the mutant that goes by the clock of its machine rejects the sessions of other nodes', async () => {
  const location = await newLocation('postgres')
  writeFileSync(marks, '')
  const right = await ShiftedNode.start(location.url, 0)
  const ahead = await ShiftedNode.start(location.url, 2 * HOUR_MS, { OWN_CLOCK: 'on' })
  const client = await HttpClient.login(right.url, USERNAME, PASSWORD)
  expect(await right.statusWith(client)).toBe(200)
  expect(await ahead.statusWith(client)).toBe(401)
  for (const { process } of [right, ahead]) await process.kill()
  location.remove()
})
