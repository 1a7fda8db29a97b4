// What several files of tests need, made once in a run of the tests.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inject } from 'vitest'

const POLL_MS = 200

/** Returns the result of `make`, a path. The first file of tests that asks for `name` makes it, in an own folder; the others wait. */
export async function makeOnce(name: string, make: (folder: string) => string): Promise<string> {
  const folder = path.join(inject('runFolder'), name)
  const pathFile = path.join(folder, 'path')
  const isFirst = mkdirSync(folder, { recursive: true }) !== undefined
  if (isFirst) {
    writeFileSync(`${pathFile}.new`, make(path.join(folder, 'made')))
    renameSync(`${pathFile}.new`, pathFile)
  }
  while (!existsSync(pathFile)) await sleep(POLL_MS)
  return readFileSync(pathFile, 'utf8')
}
