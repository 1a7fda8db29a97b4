// Texts of models → new files of a folder: all of them, or none.
import { existsSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { makeFolder } from '../../store/sqlite/blob-folder.js'
import { PUBLIC_FOLDER_MODE } from '../../store/engine/private-files.js'
import { translateFileFault } from '../file-error.js'

const NOTHING = 'Nothing was written'

export interface NewFile {
  readonly name: string
  readonly text: string
}

/** Refuses if anything is in the way. */
export function writeModels(files: readonly NewFile[], folder: string, place: string): void {
  const written: string[] = []
  try {
    refuseInTheWay(files, folder, place)
    makeFolder(folder, PUBLIC_FOLDER_MODE)
    for (const { name, text } of files) {
      const file = path.join(folder, name)
      writeFileSync(file, text, { flag: 'wx' })
      written.push(file)
    }
  } catch (error) {
    for (const file of written) rmSync(file, { force: true })
    throw translateFileFault(NOTHING, error)
  }
}

function refuseInTheWay(files: readonly NewFile[], folder: string, place: string): void {
  const faults = isReadFrom(place, folder)
    ? [`${folder} is where the models are read from, and would have all of them twice: name another folder`]
    : faultsInTheWay(files, folder)
  if (faults.length > 0) throw new ConfigError(NOTHING, faults)
}

/** The folder of the models, or one below: a service would read what is written there, too. */
function isReadFrom(place: string, folder: string): boolean {
  const root = statSync(place).isDirectory() ? place : path.dirname(place)
  const relative = path.relative(realpathSync(root), realPath(path.resolve(folder)))
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative)
}

/** Also of what is not there yet. */
function realPath(place: string): string {
  const parent = path.dirname(place)
  return parent === place || existsSync(place)
    ? realpathSync(place)
    : path.join(realPath(parent), path.basename(place))
}

/** Many file systems take names that differ only in case for the same. */
function faultsInTheWay(files: readonly NewFile[], folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : []
  const there = new Map(names.map((name) => [name.toLowerCase(), name]))
  return files.flatMap(({ name }) => {
    const other = names.includes(name) ? name : there.get(name.toLowerCase())
    if (other === undefined) return []
    const file = path.join(folder, other)
    return [other === name ? `${file} is there already` : `${file} differs from ${name} only in case`]
  })
}
