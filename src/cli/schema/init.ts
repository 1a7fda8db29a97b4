import { constants, copyFileSync, existsSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { makeFolder } from '../../store/sqlite/blob-folder.js'
import { PUBLIC_FOLDER_MODE } from '../../store/engine/private-files.js'
import { translateFileFault } from '../file-error.js'
import { packageFile } from '../package-files.js'

const STARTER = ['task.ts', 'tag.json']
const NOTHING = 'Nothing was written'

export function addInit(program: Command): void {
  program
    .command('init')
    .description('write a commented starter folder of models')
    .argument('[folder]', 'where to write it', 'models')
    .action((folder: string) => {
      process.stdout.write(writeStarter(folder))
    })
}

/** Answers what to tell people. Writes nothing if anything is in the way. */
export function writeStarter(folder: string): string {
  const files = STARTER.map((name) => path.join(folder, name))
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new ConfigError(NOTHING, [`${folder} is a file; name a folder`])
  }
  const inTheWay = files.filter((file) => existsSync(file))
  if (inTheWay.length > 0) {
    throw new ConfigError(
      NOTHING,
      inTheWay.map((file) => `${file} is there already`),
    )
  }
  const written: string[] = []
  try {
    makeFolder(folder, PUBLIC_FOLDER_MODE)
    for (const [index, file] of files.entries()) {
      copyFileSync(packageFile(`examples/starter/${STARTER[index] ?? ''}`), file, constants.COPYFILE_EXCL)
      written.push(file)
    }
  } catch (error) {
    for (const file of written) rmSync(file, { force: true })
    throw translateFileFault(NOTHING, error)
  }
  const place = /^[\w./-]+$/.test(folder) ? folder : `'${folder}'`
  return `wrote ${files.join(' and ')}\nnow run: verso serve --models ${place}\n`
}
