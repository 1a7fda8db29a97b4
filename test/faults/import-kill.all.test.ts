// A killed import leaves complete portions, and continues when it is run again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { newLocation, onEveryEngine, startService } from '../targets.js'
import { auditFiles } from '../file-audit.js'
import { digestOf, exported, blobPath, writeFiles, writeModels } from '../transfer/transfer-fixture.js'
import { untilNobodyWrites } from './kills.js'

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

/** Each person refers to the next one, which often is not imported yet when the import is killed. */
function lineOf(id: number): string {
  return JSON.stringify({
    ...{ id, version: id % 3, name: `P${id}`, born: null, rate: null, isActive: null, company: null },
    ...{ boss: id < COUNT ? { id: id + 1 } : null, circles: [{ id: 1 }], keeper: null },
    ...{ createdOn: '2024-01-02T03:04:05.678Z', createdBy: null, updatedOn: null, updatedBy: null },
  })
}

const FILES = 320

/** Papers with one file each; a few files have equal content. */
function writePapers(): string {
  const contents = Array.from({ length: FILES }, (_, index) => String(index % 310).repeat(3_000))
  const lines = contents.map((content, index) => ({
    ...{ id: index + 1, version: 0, title: `P${index}` },
    scan: {
      ...{ name: `${index}.txt`, type: 'text/plain; charset=utf-8' },
      ...{ size: content.length, sha256: digestOf(content) },
    },
  }))
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const beside = contents.map((content) => [blobPath(content), content] as const)
  return writeFiles(path.join(scratch, 'papers'), {
    'doc.Paper.ndjson': text,
    ...Object.fromEntries(beside),
  })
}

const OWNERS = 100
const MEMBERS = 8_000

/** Owners with odd ids exist before their members; those with even ids are imported with them. */
function writeOwners(): { early: string; all: string } {
  const owners = Array.from({ length: OWNERS }, (_, index) => ({ id: index + 1, version: 3, name: 'C' }))
  const members = Array.from({ length: MEMBERS }, (_, index) => ({
    ...{ id: index + 1, version: 0, city: 'Rome', company: { id: (index % OWNERS) + 1 } },
  }))
  const text = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  return {
    early: writeFiles(path.join(scratch, 'early'), {
      'rel.Company.ndjson': text(owners.filter(({ id }) => id % 2 === 1)),
    }),
    all: writeFiles(path.join(scratch, 'all'), {
      'rel.Company.ndjson': text(owners),
      'rel.Address.ndjson': text(members),
    }),
  }
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
  test(`an import killed ${KILLS} times loses nothing, leaves no partial record, and completes`, async () => {
    const location = await newLocation(engine)
    // Creates the tables, so that the kills hit the writes.
    await (await startService(engine, { location })).close()
    const db = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const begin = () =>
      spawn(process.execPath, [MAIN, 'import', '--models', models, '--db', location.url, folder], {
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
    expect(said).toContain(`imported ${COUNT - last} records, ${last + 1} existed already`)
    expect(await counted(db)).toEqual({ people: COUNT, links: COUNT, changes: COUNT })
    await db.close()
    const service = await startService(engine, { location })
    expect((await exported(service.app))['rel.Person.ndjson'] === text).toBe(true)
    await service.close()
    location.remove()
  })

  test('a killed import of list members raises the version of existing owners only, and completes', async () => {
    const location = await newLocation(engine)
    await (await startService(engine, { location })).close()
    const { early, all } = writeOwners()
    const db = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const membersThere = async () =>
      Number((await db.reader.all('select count(*) as "count" from "rel.Address"'))[0]?.['count'])
    const begin = (files: string) =>
      spawn(process.execPath, [MAIN, 'import', '--models', models, '--db', location.url, files], {
        stdio: 'pipe',
      })
    expect(await once(begin(early), 'exit')).toEqual([0, null])
    const child = begin(all)
    const ended = once(child, 'exit')
    while ((await membersThere()) < 2_000 && child.exitCode === null) await new Promise(setImmediate)
    child.kill('SIGKILL')
    expect(await ended).toEqual([null, 'SIGKILL'])
    if (engine === 'postgres') await untilNobodyWrites(db.reader)
    const there = await membersThere()
    expect(there).toBeLessThan(MEMBERS)
    const again = begin(all)
    let said = ''
    again.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    expect(await once(again, 'exit')).toEqual([0, null])
    expect(said).toContain(
      `imported ${MEMBERS - there + OWNERS / 2} records, ${there + OWNERS / 2} existed already`,
    )
    const rows = await db.reader.all(
      `select c."id", c."version", (select count(*) from "rel.Address" where "company" = c."id") as "members", ` +
        `(select max(version) from verso_log where model = 'rel.Company' and record = c."id") as "logged" ` +
        `from "rel.Company" as c`,
    )
    expect(rows).toHaveLength(OWNERS)
    for (const row of rows) {
      const [id, version] = [Number(row['id']), Number(row['version'])]
      expect(Number(row['members'])).toBe(MEMBERS / OWNERS)
      expect(Number(row['logged'])).toBe(version)
      // One new version for each portion of a thousand members.
      expect(version).toBe(id % 2 === 1 ? 3 + MEMBERS / 1_000 : 3)
    }
    await db.close()
    location.remove()
  })

  test('a killed import of files leaves each imported record with its file, and completes', async () => {
    const location = await newLocation(engine)
    await (await startService(engine, { location })).close()
    const papers = writePapers()
    const db = await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 })
    const papersThere = async () =>
      Number((await db.reader.all('select count(*) as "count" from "doc.Paper"'))[0]?.['count'])
    const begin = () =>
      spawn(process.execPath, [MAIN, 'import', '--models', models, '--db', location.url, papers], {
        stdio: 'pipe',
      })
    const child = begin()
    const ended = once(child, 'exit')
    while ((await papersThere()) === 0 && child.exitCode === null) await new Promise(setImmediate)
    child.kill('SIGKILL')
    expect(await ended).toEqual([null, 'SIGKILL'])
    if (engine === 'postgres') await untilNobodyWrites(db.reader)
    const there = await papersThere()
    expect(there).toBeLessThan(FILES)
    const service = await startService(engine, { location })
    expect(await auditFiles(service.app.db, location.url)).toEqual({ held: there, violations: [] })
    await service.close()
    const again = begin()
    let said = ''
    again.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    expect(await once(again, 'exit')).toEqual([0, null])
    expect(said).toContain(`imported ${FILES - there} records, ${there} existed already`)
    expect(await auditFiles(db, location.url)).toEqual({ held: FILES, violations: [] })
    await db.close()
    location.remove()
  })
})
