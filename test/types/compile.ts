// Compiles programs that use the client, in a folder of their own, as a project that has the package installed.
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.join(import.meta.dirname, '../..')
const BIN = path.join(ROOT, 'node_modules/.bin')

/** `tsc` is TypeScript 7, `tsc6` is TypeScript 6. */
export type Compiler = 'tsc' | 'tsc6'

const BROWSER_OPTIONS = {
  ...{ strict: true, exactOptionalPropertyTypes: true, target: 'es2022', lib: ['ES2022', 'DOM'], types: [] },
  ...{ module: 'esnext', moduleResolution: 'bundler', noEmit: true, skipLibCheck: true },
}

/** Emits the declarations of the client and of `defineModel`, and installs them as the package `verso-records`. */
export function installClientTypes(folder: string): void {
  const home = path.join(folder, 'node_modules/verso-records')
  mkdirSync(home, { recursive: true })
  const emitted = {
    extends: path.join(ROOT, 'tsconfig.build.json'),
    compilerOptions: {
      ...{ rootDir: path.join(ROOT, 'src'), outDir: path.join(home, 'dist'), sourceMap: false },
      ...{ emitDeclarationOnly: true, typeRoots: [path.join(ROOT, 'node_modules/@types')] },
    },
    include: [],
    files: [`${ROOT}/src/client/index.ts`, `${ROOT}/src/model/definition/define-model.ts`],
  }
  writeFileSync(path.join(folder, 'tsconfig.emit.json'), JSON.stringify(emitted))
  run('tsc', folder, 'tsconfig.emit.json')
  const exports = {
    '.': { types: './dist/model/definition/define-model.d.ts' },
    './client': { types: './dist/client/index.d.ts' },
  }
  writeFileSync(
    path.join(home, 'package.json'),
    JSON.stringify({ name: 'verso-records', type: 'module', exports }),
  )
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
}

/** Writes the tsconfig of a browser project and returns its name. */
export function writeProject(folder: string, files: readonly string[], options: object = {}): string {
  const name = `tsconfig.${path.parse(files.join('-')).name}.json`
  const config = { compilerOptions: { ...BROWSER_OPTIONS, ...options }, files }
  writeFileSync(path.join(folder, name), JSON.stringify(config))
  return name
}

/** Returns the diagnostics, one in each line; nothing if the project compiles. */
export function compile(compiler: Compiler, folder: string, project: string): string {
  const { stdout, stderr } = spawnSync(
    path.join(BIN, compiler),
    ['--pretty', 'false', '-p', path.join(folder, project)],
    { encoding: 'utf8', cwd: folder },
  )
  return stdout + stderr
}

function run(compiler: Compiler, folder: string, project: string): void {
  const errors = compile(compiler, folder, project)
  if (errors !== '') throw new Error(errors)
}
