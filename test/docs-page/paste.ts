// Runs snippets as their readers would: in a shell, as a module of Node in a project with the client, and in Python without packages.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'

export const ROOT = path.join(import.meta.dirname, '../..')
export const LABELS = ['curl', 'TypeScript', 'Python'] as const
export type Label = (typeof LABELS)[number]
export const run = promisify(execFile)

/** Puts the client where a project has it after an installation. */
export function installClient(project: string): void {
  const installed = path.join(project, 'node_modules/verso-records')
  mkdirSync(installed, { recursive: true })
  const exports = { './client': './client/index.js' }
  writeFileSync(path.join(installed, 'package.json'), JSON.stringify({ type: 'module', exports }))
  const source = path.join(ROOT, 'src/client')
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue
    const target = path.join(installed, 'client', name.replace(/\.ts$/, '.js'))
    mkdirSync(path.dirname(target), { recursive: true })
    writeFileSync(target, transpile(readFileSync(path.join(source, name), 'utf8')))
  }
}

function transpile(text: string): string {
  const { ESNext: module } = ts.ModuleKind
  return ts.transpileModule(text, { compilerOptions: { module, target: ts.ScriptTarget.ES2023 } }).outputText
}

/** Where snippets run. */
export interface Project {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
}

/** Runs a snippet, and returns the JSON that it prints. */
export async function paste({ folder, env }: Project, label: Label, text: string): Promise<unknown> {
  if (label === 'curl') return parse(await run('bash', ['-c', text], { cwd: folder, env }))
  if (label === 'Python') return parse(await run('python3', ['-c', text], { cwd: folder, env }))
  writeFileSync(path.join(folder, 'snippet.mjs'), transpile(text))
  return parse(await run(process.execPath, ['snippet.mjs'], { cwd: folder, env }))
}

export function parse({ stdout }: { readonly stdout: string }): unknown {
  // A program that deletes prints nothing.
  return stdout === '' ? undefined : JSON.parse(stdout)
}

export interface Output {
  readonly printed: string
  readonly failure?: string | null
}

const TYPESCRIPT_RUNNER = `
const print = console.log
const outputs = []
for (const name of process.argv.slice(2)) {
  const output = { printed: '' }
  console.log = (...values) => { output.printed += values.join(' ') }
  try { await import(name) } catch (error) { output.failure = String(error) }
  outputs.push(output)
}
print(JSON.stringify(outputs))`

const PYTHON_RUNNER = `
import contextlib, io, json, runpy, sys
outputs = []
for name in sys.argv[1:]:
    printed, failure = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(name)
        except BaseException as error:
            failure = str(error)
    outputs.append({"printed": printed.getvalue(), "failure": failure})
print(json.dumps(outputs))`

/** curl succeeds with every status, so the runner stops only if a command fails. */
const CURL_RUNNER = 'for name in "$@"; do bash -e "$name" > "$name.out" || exit 1; done'

const RUNNERS = {
  curl: { extension: 'sh', program: 'bash', runner: CURL_RUNNER },
  TypeScript: { extension: 'mjs', program: process.execPath, runner: TYPESCRIPT_RUNNER },
  Python: { extension: 'py', program: 'python3', runner: PYTHON_RUNNER },
} as const satisfies Record<Label, object>

/** Runs snippets one after the other. A shared process starts them, because a start from the process of the tests is slow. */
export async function pasteAll(
  { folder, env }: Project,
  label: Label,
  texts: readonly string[],
): Promise<readonly Output[]> {
  const place = mkdtempSync(path.join(folder, 'all-'))
  const { extension, program, runner } = RUNNERS[label]
  const write = (name: string, text: string) => {
    writeFileSync(path.join(place, name), text)
    return `./${name}`
  }
  const names = texts.map((text, index) =>
    write(`snippet-${index}.${extension}`, label === 'TypeScript' ? transpile(text) : text),
  )
  const { stdout } = await run(program, [write(`runner.${extension}`, runner), ...names], { cwd: place, env })
  if (label !== 'curl') return JSON.parse(stdout) as Output[]
  return names.map((name) => {
    const printed = readFileSync(path.join(place, `${name}.out`), 'utf8')
    return { printed, ...(/^\{"status":-/.test(printed) ? { failure: printed } : {}) }
  })
}
