// The packed package, made once in a run of the tests.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inject } from 'vitest'
import { makePackage } from '../../scripts/package.mjs'

/** Returns the path of the tarball. The first file of tests that needs it makes it; the others wait. */
export async function findTarball(): Promise<string> {
  const folder = path.join(inject('runFolder'), 'package')
  const pathFile = path.join(folder, 'path')
  const isFirst = mkdirSync(folder, { recursive: true }) !== undefined
  if (isFirst) {
    writeFileSync(`${pathFile}.new`, makePackage(path.join(folder, 'new')))
    renameSync(`${pathFile}.new`, pathFile)
  }
  while (!existsSync(pathFile)) await sleep(200)
  return readFileSync(pathFile, 'utf8')
}
