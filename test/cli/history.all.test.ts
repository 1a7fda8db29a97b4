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
  const listed = await verso(['history', 'show', ...record, '--json', ...flags])
  expect(listed.stderr).toBe('')
  expect(JSON.parse(listed.stdout)).toMatchObject([
    { version: 1, action: 'update', changes: { run: { before: 'before', after: 'after' } } },
    { version: 0, action: 'create', on: expect.stringMatching(/^\d{4}-.*Z$/) },
  ])
  const newest = await verso(['history', 'show', ...record, '--json', '--limit', '1', ...flags])
  expect(JSON.parse(newest.stdout)).toHaveLength(1)
  expect(newest.stderr).toBe('1 of 2 changes are shown; to show more, use --limit\n')
  const everything = await verso(['history', 'compact', '--db', db])
  expect(everything).toMatchObject({ code: 0, stdout: 'nothing to remove: --retention is all\n' })
  const young = await verso(['history', 'compact', '--retention', '1v', '--db', db])
  expect(young).toMatchObject({ code: 0, stdout: 'removed 0 changes\n' })

  const unasked = await verso(['history', 'purge', ...record, ...flags])
  expect([unasked.code, unasked.stderr]).toEqual([
    1,
    expect.stringMatching(/^Nothing was changed:\n {2}- standard input is not a terminal, .*pass --yes\n$/),
  ])
  const purged = await verso(['history', 'purge', ...record, '--yes', ...flags])
  expect(purged.stdout).toContain(`removed the values of 2 changes of ${MODEL} ${data.id}\n`)
  expect((await verso(['history', 'show', ...record, ...flags])).stdout).not.toContain('before')
})

test('an error of history show or purge says that nothing was shown or changed', async () => {
  const { stderr: id } = await verso(['history', 'show', MODEL, 'x', '--db', newDatabase()])
  expect(id).toBe('The history cannot be shown:\n  - "x" is not an id: an id is a whole number from 1\n')
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
