import { constants, copyFileSync, existsSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { PUBLIC_FOLDER_MODE, makeFolder } from '../../store/engine/private-files.js'
import { toFileConfigError } from '../file-error.js'
import { NOTHING_WRITTEN } from '../models/model-writer.js'
import { resolvePackageFile } from '../package-files.js'
import { spellCommands } from '../terminal/invocation.js'

const DEFAULT_FOLDER = 'models'
const STARTER_FILES = ['task.ts', 'tag.json']

export function addInitCommand(program: Command): void {
  program
    .command('init')
    .description('create a folder with commented example models')
    .argument('[folder]', 'folder to create the files in', DEFAULT_FOLDER)
    .action((folder: string) => {
      process.stdout.write(spellCommands(writeStarterModels(folder)))
    })
}

/** Writes the starter files, or none if one exists already; returns a message for the user. */
export function writeStarterModels(folder: string): string {
  const files = STARTER_FILES.map((name) => path.join(folder, name))
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new ConfigError(NOTHING_WRITTEN, [`${folder} is a file; name a folder`])
  }
  const existing = files.filter((file) => existsSync(file))
  if (existing.length > 0) {
    throw new ConfigError(
      NOTHING_WRITTEN,
      existing.map((file) => `${file} exists already`),
    )
  }
  const written: string[] = []
  try {
    makeFolder(folder, PUBLIC_FOLDER_MODE)
    for (const [index, file] of files.entries()) {
      copyFileSync(
        resolvePackageFile(`examples/starter/${STARTER_FILES[index] ?? ''}`),
        file,
        constants.COPYFILE_EXCL,
      )
      written.push(file)
    }
  } catch (error) {
    for (const file of written) rmSync(file, { force: true })
    throw toFileConfigError(NOTHING_WRITTEN, error)
  }
  const shellPath = /^[\w./-]+$/.test(folder) ? folder : `'${folder}'`
  // `verso dev` serves this folder by default.
  const flags = folder === DEFAULT_FOLDER ? '' : ` --models ${shellPath}`
  return `wrote ${files.join(' and ')}\nnext: verso dev${flags}\n`
}
