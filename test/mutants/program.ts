// Copies of the built program with one mistake.
import { copyFileSync, cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = path.join(import.meta.dirname, '../..')

export interface Mistake {
  /** A file of dist. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** A program in which a variable of `.env` replaces one that is set already. */
export const WITH_FILE_FIRST: Mistake = { file: 'cli/environment-file.js', from: '??= value', to: '= value' }

/** A program whose forms repeat the password that was typed. */
export const REPEATING_PASSWORDS: Mistake = {
  file: 'http/auth/password-pages.js',
  from: `isSecret ? ''`,
  to: `isSecret === undefined ? ''`,
}

/** A program that prints control characters as they are. */
export const WITHOUT_ESCAPES: Mistake = {
  file: 'cli/terminal/escape-controls.js',
  from: 'return text',
  to: 'return text; text',
}

/** A program that never evaluates a file again. */
export const WITH_STALE_MODULES: Mistake = {
  file: 'cli/models/code-models.js',
  from: 'Reflect.deleteProperty(moduleCache, file)',
  to: 'void file',
}

/** Creates the program in a new folder of `parent`. Returns the path of its dist. */
export function createMutantProgram(parent: string, ...mistakes: Mistake[]): string {
  const folder = mkdtempSync(path.join(parent, 'mutant-'))
  const dist = path.join(folder, 'dist')
  cpSync(path.join(ROOT, 'dist'), dist, { recursive: true })
  copyFileSync(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'))
  for (const name of ['node_modules', 'examples', 'src'])
    symlinkSync(path.join(ROOT, name), path.join(folder, name))
  for (const { file, from, to } of mistakes) {
    const code = readFileSync(path.join(dist, file), 'utf8')
    if (code.split(from).length !== 2) throw new Error(`${file} must contain this once: ${from}`)
    writeFileSync(
      path.join(dist, file),
      code.replace(from, () => to),
    )
  }
  return dist
}

/** Imports a module of the mutant, a file of its dist. */
export async function importFromMutant(parent: string, mistake: Mistake, file: string): Promise<unknown> {
  const dist = createMutantProgram(parent, mistake)
  return import(/* @vite-ignore */ pathToFileURL(path.join(dist, file)).href)
}
