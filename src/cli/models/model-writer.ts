// Writes model files into a folder: all of them, or none.
import { existsSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { PUBLIC_FOLDER_MODE, makeFolder } from '../../store/engine/private-files.js'
import { toFileConfigError } from '../file-error.js'

export const NOTHING_WRITTEN = 'Nothing was written'

export interface NewModelFile {
  readonly name: string
  readonly text: string
}

/** Fails if a file exists already. */
export function writeModelFiles(files: readonly NewModelFile[], folder: string, sourcePath: string): void {
  const written: string[] = []
  try {
    refuseConflictingFiles(files, folder, sourcePath)
    makeFolder(folder, PUBLIC_FOLDER_MODE)
    for (const { name, text } of files) {
      const file = path.join(folder, name)
      writeFileSync(file, text, { flag: 'wx' })
      written.push(file)
    }
  } catch (error) {
    for (const file of written) rmSync(file, { force: true })
    throw toFileConfigError(NOTHING_WRITTEN, error)
  }
}

function refuseConflictingFiles(files: readonly NewModelFile[], folder: string, sourcePath: string): void {
  const errors = isInsideSource(sourcePath, folder)
    ? [`${folder} is inside the source folder, where every model would then exist twice; name another folder`]
    : findConflictingFiles(files, folder)
  if (errors.length > 0) throw new ConfigError(NOTHING_WRITTEN, errors)
}

/** True for the folder of the models or one below it: a service that reads the models would read the new files too. */
function isInsideSource(sourcePath: string, folder: string): boolean {
  const root = statSync(sourcePath).isDirectory() ? sourcePath : path.dirname(sourcePath)
  const relative = path.relative(realpathSync(root), resolveRealPath(path.resolve(folder)))
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

/** Resolves links in the existing part of the path. */
function resolveRealPath(target: string): string {
  const parent = path.dirname(target)
  return parent === target || existsSync(target)
    ? realpathSync(target)
    : path.join(resolveRealPath(parent), path.basename(target))
}

/** Many file systems ignore case in file names. */
function findConflictingFiles(files: readonly NewModelFile[], folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : []
  const existing = new Map(names.map((name) => [name.toLowerCase(), name]))
  return files.flatMap(({ name }) => {
    const other = names.includes(name) ? name : existing.get(name.toLowerCase())
    if (other === undefined) return []
    const file = path.join(folder, other)
    return [other === name ? `${file} exists already` : `${file} differs from ${name} only in case`]
  })
}
