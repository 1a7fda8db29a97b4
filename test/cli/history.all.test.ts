// The output of `verso history`, and its confirmation before a purge.
import path from 'node:path'
import { expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { cleanUpAfterwards, newDatabase, PASSWORD, start, verso } from './program.js'

cleanUpAfterwards()

const MODELS = path.join(import.meta.dirname, '../../examples/prove')
const MODEL = 'prove.TokenList'

test('history commands show, compact and purge the history of a record', async () => {
  const db = newDatabase()
  const { url } = await start(['serve', '--models', MODELS, '--db', db, '--port', '0'], {
    VERSO_ADMIN_PASSWORD: PASSWORD,
  })
  const client = await HttpClient.login(url, 'admin', PASSWORD)
  const { data } = await client.create(MODEL, { run: 'before', tokens: [] })
  await client.update(MODEL, data.id, { version: 0, run: 'after' })
  const flags = ['--models', MODELS, '--db', db]
  const record = [MODEL, String(data.id)]

  const shown = await verso(['history', 'show', ...record, ...flags])
  expect(shown.stdout).toContain('run: "before" → "after"')
  const everything = await verso(['history', 'compact', '--db', db])
  expect(everything).toMatchObject({ code: 0, stdout: 'nothing to do: --retention is all\n' })
  const young = await verso(['history', 'compact', '--retention', '1v', '--db', db])
  expect(young).toMatchObject({ code: 0, stdout: '0 Changes removed\n' })

  const unasked = await verso(['history', 'purge', ...record, ...flags])
  expect([unasked.code, unasked.stderr]).toEqual([
    1,
    'Nothing was changed:\n  - there is nobody to ask: say --yes to remove it for good\n',
  ])
  const purged = await verso(['history', 'purge', ...record, '--yes', ...flags])
  expect(purged.stdout).toContain(`what 2 Changes told of ${MODEL} ${data.id} was removed\n`)
  expect((await verso(['history', 'show', ...record, ...flags])).stdout).not.toContain('before')
})

test('an error of history show or purge says that nothing is shown or changed', async () => {
  const { stderr: id } = await verso(['history', 'show', MODEL, 'x', '--db', newDatabase()])
  expect(id).toBe('Nothing is shown:\n  - "x" is no id: ids are whole numbers from 1\n')
  const { stderr: purged } = await verso(['history', 'purge', MODEL, 'x', '--db', newDatabase()])
  expect(purged).toContain('Nothing was changed:\n')
})

test.for([
  ['show', false],
  ['purge', false],
  ['compact', true],
] as const)('verso history %s lists --retention in its help: %s', async ([command, isTaken]) => {
  const { code, stdout } = await verso(['help', 'history', command])
  expect([code, stdout.includes('--retention <amount>')]).toEqual([0, isTaken])
})
