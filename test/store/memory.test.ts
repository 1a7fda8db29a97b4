// `sqlite::memory:` behaves as a file does, and leaves nothing behind.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createVerso, defineModel, type Verso, type VersoRecords } from 'verso-records'

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

async function open(): Promise<Verso> {
  return createVerso({ db: 'sqlite::memory:', models: [Note] })
}

async function recordsOf(verso: Verso): Promise<VersoRecords> {
  await verso.ensureFirstAdmin('admin', PASSWORD)
  const { user } = await verso.login({ username: 'admin', password: PASSWORD })
  return verso.records(user)
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
  const verso = await open()
  const records = await recordsOf(verso)
  const { data } = await records.create('crm.Note', { text: 'a' })
  await records.update('crm.Note', data.id, { version: 0, text: 'b' })
  await expect(records.update('crm.Note', data.id, { version: 0, text: 'c' })).rejects.toMatchObject({
    kind: 'conflict',
  })
  await verso.close()
})
