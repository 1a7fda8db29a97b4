import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BackupFolder } from '../../src/cli/serve/backup-folder.js'

const NOW_MS = Date.parse('2026-01-31T12:00:00Z')
const HOUR_MS = 3_600_000

let folder: string
let backups: BackupFolder
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-backups-'))
  backups = new BackupFolder(folder)
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function writeUnverified(atMs: number): string {
  const file = backups.nameUnverified(atMs)
  writeFileSync(file, 'a backup')
  return file
}

test('the last backups stay, and older ones are deleted', async () => {
  const files: string[] = []
  for (const hours of [-3, -2, -1, 0])
    files.push(await backups.markVerified(writeUnverified(NOW_MS + hours * HOUR_MS)))
  const [oldest, second, ...last] = files.map((file) => path.basename(file))
  expect(await backups.prune(2, files[3] ?? '')).toEqual([oldest, second])
  expect(readdirSync(folder).sort()).toEqual(last)
})

test('a backup stays although a clock that was ahead has given an older one a later name', async () => {
  await backups.markVerified(writeUnverified(NOW_MS + 24 * HOUR_MS))
  const newest = await backups.markVerified(writeUnverified(NOW_MS))
  await backups.prune(1, newest)
  expect(readdirSync(folder)).toEqual([path.basename(newest)])
})

test('an unverified backup stays although a failed one has a later name', async () => {
  writeUnverified(NOW_MS + 24 * HOUR_MS)
  const newest = writeUnverified(NOW_MS)
  await backups.pruneUnverified(newest)
  expect(readdirSync(folder)).toEqual([path.basename(newest)])
})

test('a folder that has backups of another database is refused, and stays as it is', async () => {
  // A killed process has left it.
  writeFileSync(path.join(folder, 'database-id'), '')
  await backups.prepare(1)
  const file = await backups.markVerified(writeUnverified(NOW_MS))
  await backups.prepare(1)
  await expect(backups.prepare(2)).rejects.toThrow(/it has backups of another database/)
  expect(await backups.findProblem(2)).toMatch(/it has backups of another database/)
  expect(await backups.findProblem(1)).toBeUndefined()
  expect(readdirSync(folder)).toContain(path.basename(file))
})

test('after a failure that wrote no file, the newest unverified backup stays', async () => {
  writeUnverified(NOW_MS - HOUR_MS)
  const newest = writeUnverified(NOW_MS)
  await backups.pruneUnverified(backups.nameUnverified(NOW_MS + HOUR_MS))
  expect(readdirSync(folder)).toEqual([path.basename(newest)])
})
