// The output of `verso hooks`: what runs for a model, and the failures of hooks after the commit.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { cleanUpAfterwards, newDatabase, PASSWORD, scratch, start, verso } from './program.js'

cleanUpAfterwards()

const FILES: Readonly<Record<string, string>> = {
  'order.ts': `import { defineModel } from 'verso-records'
    export const Order = defineModel({
      name: 'shop.Order',
      fields: { total: { type: 'integer' }, paid: { type: 'integer' } },
      checks: [{ condition: 'paid <= total', message: 'must not exceed the total', field: 'paid' }],
      hooks: {
        beforeSave: () => undefined,
        validate: () => undefined,
        afterCommit: { mail: ({ after }) => { if (after?.total === 13) throw new Error('no mail for 13') }, count: () => undefined },
      },
    })
    export const Plain = defineModel({ name: 'shop.Plain', fields: { name: { type: 'string' } } })`,
  'rules.ts': `import { extendModel } from 'verso-records'
    export const rules = extendModel({ name: 'shop.Order', hooks: { beforeSave: undefined, validate: () => undefined, afterRemove: () => undefined } })
    export const accounts = extendModel({ name: 'verso.auth.User', hooks: { beforeSave: () => undefined, afterSave: () => undefined } })`,
}

function writeModels(): string {
  const folder = path.join(scratch, 'hooked')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(FILES)) writeFileSync(path.join(folder, name), text)
  return folder
}

test('verso hooks lists what runs for a model, in order, with the files', async () => {
  const flags = ['--models', writeModels(), '--db', newDatabase()]
  const { stdout, stderr, code } = await verso(['hooks', 'shop.Order', ...flags])
  expect(stdout.split('\n').map((line) => line.trimEnd().split(/ {2,}/))).toEqual([
    ['hook', 'from', 'state'],
    ['beforeSave', 'hooked/order.ts'],
    ['validate', 'hooked/order.ts'],
    ['validate', 'hooked/rules.ts (extension)'],
    ['check paid <= total', 'hooked/order.ts'],
    ['afterRemove', 'hooked/rules.ts (extension)'],
    ['afterCommit mail', 'hooked/order.ts'],
    ['afterCommit count', 'hooked/order.ts'],
    [''],
  ])
  expect(stderr).toContain('the state of afterCommit hooks is not shown')
  expect(code).toBe(0)
  const { stdout: none } = await verso(['hooks', 'shop.Plain', ...flags])
  expect(none).toBe('shop.Plain has no hooks\n')
  const { stdout: all } = await verso(['hooks', '--json', ...flags])
  const rows = JSON.parse(all) as { model: string }[]
  expect(new Set(rows.map(({ model }) => model))).toEqual(new Set(['verso.auth.User', 'shop.Order']))
  const { stdout: users } = await verso(['hooks', 'verso.auth.User', ...flags])
  const builtIn = 'built-in rules of verso.auth.User'
  expect(users.split('\n').map((line) => line.trimEnd().split(/ {2,}/))).toEqual([
    ['hook', 'from', 'state'],
    ['prepare', builtIn],
    ['beforeSave', 'hooked/rules.ts (extension)'],
    ['afterSave', builtIn],
    ['afterSave', 'hooked/rules.ts (extension)'],
    ['afterRemove', builtIn],
    [''],
  ])
})

test('verso hooks names a model that is similar to an unknown one, and needs models', async () => {
  const { stderr, code } = await verso(['hooks', 'shop.Ordr', '--models', writeModels()])
  expect(code).toBe(1)
  expect(stderr).toContain('there is no model "shop.Ordr" (did you mean "shop.Order"?)')
  expect((await verso(['hooks'])).stderr).toContain('--models is missing')
})

test('verso hooks failed lists failures, verso hooks retry lets them run again, and verso hooks discard gives them up', async () => {
  const db = newDatabase()
  const models = writeModels()
  const server = await start(['serve', '--models', models, '--db', db, '--port', '0'], {
    VERSO_ADMIN_PASSWORD: PASSWORD,
  })
  const empty = await verso(['hooks', 'failed', '--db', db])
  expect(empty).toMatchObject({ code: 0, stdout: 'no hook has failed\n' })
  const client = await HttpClient.login(server.url, 'admin', PASSWORD)
  const { data } = await client.create('shop.Order', { total: 13 })
  const read = async () =>
    JSON.parse((await verso(['hooks', 'failed', '--json', '--db', db])).stdout) as Record<string, unknown>[]
  await expect
    .poll(read, { timeout: 60_000 })
    .toMatchObject([{ hook: 'shop.Order/mail', record: data.id, state: 'waiting', error: 'no mail for 13' }])
  const [failure] = await read()
  const { stdout } = await verso(['hooks', 'failed', '--db', db])
  expect(stdout).toMatch(/^id +hook +record +change +attempts +next attempt +error\n/)
  expect(stdout).toMatch(/shop\.Order\/mail +\d+ +\d+ +\d+ .*no mail for 13/)
  const { stdout: listed } = await verso(['hooks', 'shop.Order', '--models', models, '--db', db])
  expect(listed).toMatch(/afterCommit mail +\S+order\.ts +up to date, 1 waiting for a retry/)
  expect(listed).toMatch(/afterCommit count +\S+order\.ts +up to date\n/)

  const neither = await verso(['hooks', 'retry', '--db', db])
  expect([neither.code, neither.stderr]).toEqual([1, expect.stringContaining('or --all for all of them')])
  const wrong = await verso(['hooks', 'retry', 'x', '--db', db])
  expect(wrong.stderr).toContain('"x" is not an id')
  for (const name of ['retry', 'discard']) {
    const unknown = await verso(['hooks', name, '98', '99', '--db', db])
    expect([unknown.code, unknown.stdout]).toEqual([1, ''])
    expect(unknown.stderr).toContain('there is no failed run 98, 99: "verso hooks failed" lists the ids')
  }
  const one = await verso(['hooks', 'retry', String(failure?.['id']), '--db', db])
  expect(one).toMatchObject({ code: 0, stdout: '1 change will run again, as soon as a server runs\n' })
  server.child.kill('SIGTERM')
  await server.ended()
  const all = await verso(['hooks', 'retry', '--all', '--db', db])
  expect(all.stdout).toBe('1 change will run again, as soon as a server runs\n')
  const { stdout: due } = await verso(['hooks', 'failed', '--db', db])
  expect(due).toMatch(/shop\.Order\/mail +\d+ +\d+ +0 +now +no mail for 13/)

  const discarded = await verso(['hooks', 'discard', String(failure?.['id']), '--db', db])
  expect(discarded).toMatchObject({ code: 0, stdout: '1 change discarded\n' })
  expect((await verso(['hooks', 'failed', '--db', db])).stdout).toBe('no hook has failed\n')
  expect((await verso(['hooks', 'discard', '--all', '--db', db])).stdout).toBe('0 changes discarded\n')
})

test('verso hooks schedules lists schedules with their runs and errors', async () => {
  const db = newDatabase()
  const routes = path.join(scratch, 'scheduled.ts')
  writeFileSync(
    routes,
    `import { every } from 'verso-records'
    export const failing = every('1s', 'failing', () => { throw new Error('the store is closed') })
    export const cleanUp = every('36h', 'clean-up', () => undefined)`,
  )
  const flags = ['--models', writeModels(), '--routes', routes, '--db', db, '--port', '0']
  const server = await start(['serve', ...flags], { VERSO_ADMIN_PASSWORD: PASSWORD })
  const read = async () => (await verso(['hooks', 'schedules', '--db', db])).stdout
  await expect.poll(read, { timeout: 60_000 }).toContain('the store is closed')
  const [heading, ...rows] = (await read()).trimEnd().split('\n')
  expect(heading).toMatch(/^schedule +every +last run +next run +error of the last run$/)
  expect(rows).toHaveLength(2)
  expect(rows[0]).toMatch(/^clean-up +36h +never +\d{4}-\d\d-\d\d \d\d:\d\d UTC/)
  expect(rows[1]).toMatch(/^failing +1s +\d{4}-\d\d-\d\d \d\d:\d\d UTC .*the store is closed$/)
  server.child.kill('SIGTERM')
  await server.ended()
  const empty = await verso(['hooks', 'schedules', '--db', newDatabase()])
  expect(empty.stderr).toContain('does not exist')
})
