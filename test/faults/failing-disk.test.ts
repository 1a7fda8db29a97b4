// A failing disk is not a full one: SQLite cannot know what reached it, so nothing is acknowledged until a restart.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { openSqlite } from '../../src/store/sqlite/sqlite.js'
import { newLocation } from '../targets.js'

const script = fileURLToPath(new URL('fail-disk.mjs', import.meta.url))

// Windows has no limit for the size of files that a process writes.
test.skipIf(process.platform === 'win32')('no write is acknowledged after a failed commit', async () => {
  const location = await newLocation('sqlite')
  const file = location.url.slice('sqlite:'.length)
  const limited = ['-c', 'ulimit -f 2048 && exec "$@"', 'sh', process.execPath, script, file]
  const { stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8', timeout: 60_000 })
  expect(stderr).toBe('')
  const { groups, broken } = JSON.parse(stdout) as { groups: (number | string)[][]; broken: number }
  const isDone = (group: readonly (number | string)[]) =>
    group.every((outcome) => typeof outcome === 'number')
  const isRejected = (group: readonly (number | string)[]) => group.every((outcome) => outcome === 'busy')
  const firstRejected = groups.findIndex(isRejected)
  expect(firstRejected).toBeGreaterThan(0)
  expect(groups.slice(0, firstRejected).every(isDone)).toBe(true)
  expect(groups.slice(firstRejected).every(isRejected)).toBe(true)
  expect(broken).toBe(1)

  const db = await openSqlite(file)
  const stored = await db.reader.all('select id from item order by id')
  expect(stored.map((row) => row['id'])).toEqual(groups.slice(0, firstRejected).flat())
  expect(await db.reader.all('pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
  await db.close()
  location.remove()
})
