// `verso verify`: what it says, and its exit code.
import path from 'node:path'
import { expect, test } from 'vitest'
import { loadModels } from '../../src/cli/models.js'
import { createApp } from '../../src/service/create-app.js'
import { newDatabase, verso } from './program.js'

const MODELS = path.join(import.meta.dirname, '../../examples/contacts')

test('what differs is printed, and put right on request', async () => {
  const db = newDatabase()
  const app = await createApp({ models: await loadModels(MODELS), settings: { db } })
  const [row] = await app.db.reader.all(
    'select model, n from verso_count where level = 53 order by model limit 1',
  )
  const [model, n] = [String(row?.['model']), Number(row?.['n'])]
  await app.db.transaction((tx) =>
    tx.run('update verso_count set n = n + 5 where model = ? and level = 53', [model]),
  )
  await app.close()
  const place = ['--models', MODELS, '--db', db]

  const wrong = await verso(['verify', ...place])
  expect([wrong.code, wrong.stdout.replace(/ +/g, ' ')]).toEqual([
    1,
    `${model}: 1 difference\nWHAT COUNTED STORED\nall ${n + 5} ${n}\n`,
  ])
  const rebuilt = await verso(['verify', '--rebuild', ...place])
  expect([rebuilt.code, rebuilt.stdout]).toEqual([0, expect.stringContaining(`${model} is right now\n`)])
  const right = await verso(['verify', ...place])
  expect(right).toMatchObject({ code: 0, stderr: '' })
  expect(right.stdout).toMatch(/^the counters of \d+ models are right\n$/)
})

test('a database that is not there is not checked', async () => {
  const { code, stderr } = await verso(['verify', '--models', MODELS, '--db', 'sqlite:nowhere.db'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('there is no such file')])
})
