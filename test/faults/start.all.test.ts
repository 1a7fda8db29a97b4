import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { createApp } from '../../src/service/create-app.js'
import { openDatabase } from '../../src/store/open.js'
import { HttpClient } from '../http-client.js'
import { models } from '../models.js'
import { newLocation, onEveryEngine, PASSWORD, USERNAME } from '../targets.js'
import { exchange } from './load-client.js'
import { startServerProcess } from './server-process.js'

test('a database folder that cannot be created is reported immediately', () => {
  // Runs in its own process, because an endless wait would block this one, too.
  const open = `import { openSqlite } from './dist/store/sqlite/sqlite.js'; await openSqlite('/proc/verso/verso.db')`
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', open], {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect(status).toBe(1)
  expect(stderr).toMatch(/Error: E[A-Z]+: .*mkdir '.*verso'/)
})

onEveryEngine((engine) => {
  test('two processes that start concurrently on an empty database both work, with one account', async () => {
    const location = await newLocation(engine)
    const nodes = await Promise.all([startServerProcess(location.url), startServerProcess(location.url)])
    for (const { url } of nodes) {
      const client = await HttpClient.login(url, USERNAME, PASSWORD)
      const data = { title: 'from each' }
      expect((await exchange(client, 'PUT', '/ws/rest/test.Note', { data })).status).toBe(200)
    }
    const observer = await openDatabase(location.url, { poolSize: 1, statementTimeoutMs: 10_000 })
    expect(await observer.reader.all('select count(*) as count from "verso.auth.User"')).toEqual([
      { count: 1 },
    ])
    expect(await observer.reader.all('select count(*) as count from "test.Note"')).toEqual([{ count: 2 }])
    await observer.close()
    await Promise.all(nodes.map((node) => node.kill()))
    location.remove()
  })

  test('four concurrent starts create the tables once', async () => {
    for (let round = 0; round < 5; round++) {
      const location = await newLocation(engine)
      const start = () => createApp({ models, settings: { db: location.url, poolSize: 2 } })
      const apps = await Promise.all([start(), start(), start(), start()])
      const [{ db, catalog }] = apps
      const shapes = await db.reader.all('select model from verso_schema')
      const stored = catalog.storedModels.map(({ name }) => name)
      expect(shapes.map((row) => String(row['model'])).sort()).toEqual(stored.sort())
      await Promise.all(apps.map((each) => each.close()))
      location.remove()
    }
  })
})
