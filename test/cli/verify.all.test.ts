// The output and the exit code of `verso verify`.
import { statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { loadCatalog } from '../../src/cli/models/models.js'
import { createApp } from '../../src/service/create-app.js'
import { damagePages, PAGE_BYTES, pagesWith, zeroPage } from '../faults/damaged-file.js'
import { newDatabase, verso } from './program.js'

const MODELS = path.join(import.meta.dirname, '../../examples/contacts')

test('verify prints wrong counters, and verify --rebuild corrects them', async () => {
  const db = newDatabase()
  const app = await createApp({ models: await loadCatalog(MODELS), settings: { db } })
  const [row] = await app.db.reader.all(
    'select model, n from verso_count where level = 53 order by model limit 1',
  )
  const [model, n] = [String(row?.['model']), Number(row?.['n'])]
  await app.db.transaction((tx) =>
    tx.run('update verso_count set n = n + 5 where model = ? and level = 53', [model]),
  )
  await app.close()
  const flags = ['--models', MODELS, '--db', db]

  const wrong = await verso(['verify', ...flags])
  expect([wrong.code, wrong.stdout.replace(/ +/g, ' ')]).toEqual([
    1,
    expect.stringContaining(`${model}: 1 difference\nsubject counter records\nall ${n + 5} ${n}\n`),
  ])
  expect(wrong.stdout).toMatch(
    /^totals: .*, 1 error\n {2}- the counters of .* are wrong\nnot found by any check: /m,
  )
  const listed = await verso(['verify', '--json', ...flags])
  expect(listed).toMatchObject({ code: 1, stderr: '' })
  expect(JSON.parse(listed.stdout)).toEqual({
    errorCount: 1,
    notFound: expect.stringContaining('secrets') as string,
    checks: ['integrity', 'Log', 'files', 'totals'].map((name) => ({
      ...{ name, summary: expect.any(String), errorCount: name === 'totals' ? 1 : 0 },
      errors: name === 'totals' ? [`the counters of ${model} are wrong`] : [],
    })),
    wrongCounters: [
      { model, corrected: false, differences: [{ subject: 'all', counter: n + 5, records: n }] },
    ],
  })
  const rebuilt = await verso(['verify', '--rebuild', ...flags])
  expect([rebuilt.code, rebuilt.stdout]).toEqual([
    0,
    expect.stringContaining(`${model}: the counters were corrected\n`),
  ])
  const right = await verso(['verify', ...flags])
  expect(right).toMatchObject({ code: 0, stderr: '' })
  expect(right.stdout.split('\n')).toEqual([
    'integrity: integrity_check and foreign_key_check were run, no errors',
    expect.stringMatching(/^Log: \d+ records of \d+ models and \d+ Changes were compared, no errors$/),
    'files: 0 files and their content were read, no errors',
    expect.stringMatching(/^totals: the counters of \d+ models were compared, no errors$/),
    expect.stringMatching(/^not found by any check: .*earlier values in the change log.*changed alike$/),
    '',
  ])
})

test.for(['a page of zeros', 'many flipped pages'])(
  'verify reports %s in sentences, with exit code 1 and without a stack trace',
  async (damage) => {
    const db = newDatabase()
    const file = db.slice('sqlite:'.length)
    const app = await createApp({ models: await loadCatalog(MODELS), settings: { db } })
    await app.close()
    const pages = statSync(file).size / PAGE_BYTES
    if (damage === 'many flipped pages') damagePages(file, (page) => page > 3)
    else zeroPage(file, pagesWith(file, 'May do everything.')[0] ?? pages)
    const { code, stdout, stderr } = await verso(['verify', '--models', MODELS, '--db', db])
    expect(code).toBe(1)
    expect(stdout + stderr).toMatch(/malformed|damaged|page|index|row/i)
    expect(stdout + stderr).not.toMatch(/\n +at /)
    if (damage === 'a page of zeros') expect(stdout).toMatch(/^integrity: .*error/)
  },
)

test('verify rejects a database that does not exist', async () => {
  const { code, stderr } = await verso(['verify', '--models', MODELS, '--db', 'sqlite:nowhere.db'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('the file does not exist')])
})
