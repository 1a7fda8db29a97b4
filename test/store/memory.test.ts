// `sqlite::memory:` behaves as a file does, and leaves nothing behind.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createApp, defineModel, ensureFirstAdmin, login, recordsFor, type App } from 'verso-records'

const Note = defineModel({ name: 'crm.Note', fields: { text: { type: 'string' }, file: { type: 'binary' } } })
const PASSWORD = 'red kite over hills'
const before = process.env['TMPDIR']
let folder = ''

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-memory-test-'))
  process.env['TMPDIR'] = folder
})
afterEach(() => {
  if (before === undefined) delete process.env['TMPDIR']
  else process.env['TMPDIR'] = before
  rmSync(folder, { recursive: true })
})

async function open(): Promise<App> {
  return createApp({ settings: { db: 'sqlite::memory:' }, models: [{ file: 'note.ts', definition: Note }] })
}

async function recordsOf(app: App) {
  await ensureFirstAdmin(app, 'admin', PASSWORD)
  const { user } = await login(app, { username: 'admin', password: PASSWORD }, { address: '127.0.0.1' })
  return recordsFor(app, user)
}

test('two in-memory databases of one process share nothing, and are removed when they close', async () => {
  const [first, second] = [await open(), await open()]
  const records = await recordsOf(first)
  await records.create('crm.Note', { text: 'only here' })
  expect((await records.find('crm.Note')).total).toBe(1)
  // A search runs in a worker with its own connection.
  expect((await records.search('crm.Note', { data: { _domain: "self.text like '%here'" } })).total).toBe(1)
  expect((await (await recordsOf(second)).find('crm.Note')).total).toBe(0)
  expect(readdirSync(folder)).toHaveLength(2)
  await first.close()
  expect(readdirSync(folder)).toHaveLength(1)
  await second.close()
  expect(readdirSync(folder)).toEqual([])
})

test('an in-memory database has versions and conflicts', async () => {
  const app = await open()
  const records = await recordsOf(app)
  const { data } = await records.create('crm.Note', { text: 'a' })
  await records.update('crm.Note', data.id, { version: 0, text: 'b' })
  await expect(records.update('crm.Note', data.id, { version: 0, text: 'c' })).rejects.toMatchObject({
    kind: 'conflict',
  })
  await app.close()
})
