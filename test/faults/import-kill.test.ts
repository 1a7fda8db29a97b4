// An import that is killed leaves whole portions, and goes on when it is run again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/store/database.js'
import { openDatabase } from '../../src/store/open.js'
import { newPlace, onEveryEngine, startService } from '../targets.js'
import { exported, writeFiles, writeModels } from '../transfer/world.js'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const COUNT = 15_000
const KILLS = 2

let scratch: string
let models: string
let folder: string
let text: string
beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'verso-kill-'))
  models = writeModels(scratch)
  const lines = Array.from({ length: COUNT }, (_, index) => lineOf(index + 1))
  text = `${lines.join('\n')}\n`
  folder = writeFiles(path.join(scratch, 'files'), {
    'rel.Person.ndjson': text,
    'rel.Circle.ndjson': `${JSON.stringify({ id: 1, version: 3, name: 'One' })}\n`,
  })
})
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

/** Each refers to the one that comes after it: some of those are never there when the import is killed. */
function lineOf(id: number): string {
  return JSON.stringify({
    ...{ id, version: id % 3, name: `P${id}`, born: null, rate: null, isActive: null, company: null },
    ...{ boss: id < COUNT ? { id: id + 1 } : null, circles: [{ id: 1 }], keeper: null },
    ...{ createdOn: '2024-01-02T03:04:05.678Z', createdBy: null, updatedOn: null, updatedBy: null },
  })
}

async function counted(db: Database): Promise<{ people: number; links: number; changes: number }> {
  const count = async (from: string) =>
    Number((await db.reader.all(`select count(*) as "count" from ${from}`))[0]?.['count'])
  return {
    people: await count('"rel.Person"'),
    links: await count('"rel.Person:circles"'),
    changes: await count(`verso_log where model = 'rel.Person'`),
  }
}

onEveryEngine((engine) => {
  test(`${KILLS} kills lose nothing and leave nothing half done`, async () => {
    const place = await newPlace(engine)
    // Makes the tables, so that the kills hit the writing.
    await (await startService(engine, { place })).close()
    const db = await openDatabase(place.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const begin = () =>
      spawn(process.execPath, [MAIN, 'import', '--models', models, '--db', place.url, folder], {
        stdio: 'pipe',
      })
    let last = 0
    for (let kill = 1; kill <= KILLS; kill++) {
      const child = begin()
      const ended = once(child, 'exit')
      while ((await counted(db)).people < last + 2_000 && child.exitCode === null)
        await new Promise(setImmediate)
      child.kill('SIGKILL')
      expect(await ended).toEqual([null, 'SIGKILL'])
      const { people, links, changes } = await counted(db)
      expect({ links, changes }).toEqual({ links: people, changes: people })
      expect(people).toBeGreaterThan(last)
      expect(people).toBeLessThan(COUNT)
      last = people
    }
    const child = begin()
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(said).toContain(`imported ${COUNT - last} records, ${last + 1} were there already`)
    expect(await counted(db)).toEqual({ people: COUNT, links: COUNT, changes: COUNT })
    await db.close()
    const service = await startService(engine, { place })
    expect((await exported(service.app))['rel.Person.ndjson'] === text).toBe(true)
    await service.close()
    place.remove()
  })
})
