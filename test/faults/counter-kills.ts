// Two nodes in separate processes; one is killed under load again and again, and the totals must stay equal to the tables.
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { openDatabase } from '../../src/store/open.js'
import { BOX, CounterFixture, wrongTotals } from '../counter-fixture.js'
import { HttpClient } from '../http-client.js'
import { seeded } from '../properties/history-fixture.js'
import { newLocation, PASSWORD, USERNAME, type Engine } from '../targets.js'
import { untilNobodyWrites } from './kills.js'
import { startServerProcess } from './server-process.js'

const WRITERS = 6
const WRITES = [10, 60] as const
const MODELS = { MODELS: fileURLToPath(new URL('../counter-fixture.ts', import.meta.url)) }

export interface CounterKills {
  readonly written: number
  readonly wrong: readonly string[]
}

export async function killWhileCounting(engine: Engine, kills: number): Promise<CounterKills> {
  const location = await newLocation(engine)
  const start = () => startServerProcess(location.url, undefined, undefined, MODELS)
  const survivor = await start()
  let victim = await start()
  const db = await openDatabase(location.url, { poolSize: 2, statementTimeoutMs: 60_000 })
  const random = seeded(kills)
  const wrong: string[] = []
  let written = 0
  try {
    const steady = await HttpClient.login(survivor.url, USERNAME, PASSWORD)
    for (const kind of ['flat', 'tall', null]) await steady.create(BOX, { name: 'b', kind })
    for (let kill = 1; kill <= kills && wrong.length === 0; kill++) {
      const doomed = await HttpClient.login(victim.url, USERNAME, PASSWORD)
      const last = written + randomInt(...WRITES)
      const isOver = () => written >= last || !victim.isRunning()
      const write = async (writer: number) => {
        const fixture = new CounterFixture(random, `${kill} ${writer}`)
        const records = writer % 2 === 0 ? doomed : steady
        for (; !isOver(); written++) await fixture.write(records, 1)
      }
      // The kill cuts off the clients of that node.
      const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer).catch(() => undefined))
      await Promise.race(writers)
      await victim.kill()
      await Promise.all(writers)
      if (engine === 'postgres') await untilNobodyWrites(db.reader)
      wrong.push(...(await wrongTotals(steady, db.reader, random)).map((each) => `kill ${kill}: ${each}`))
      victim = await start()
    }
    return { written, wrong }
  } finally {
    await db.close()
    await victim.kill()
    await survivor.kill()
    location.remove()
  }
}
