// Follows a page of the documentation as a reader does: creates its files and pastes its commands, in order, in one shell.
import { spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import { MAIN, scratch } from '../cli/program.js'
import { readSteps, ROOT, type Step } from './page.js'

/** Ports that the pages name. Each becomes a free port. */
const PAGE_PORTS = ['8080', '8081', '8082', '5173', '5174']
const START_TIMEOUT_S = 60
const STEP_MARK = '\u001e'

export interface ReaderOptions {
  /** Flags of a demo that runs before the first step, for pages that assume one. */
  readonly demo?: readonly string[]
  /** The package as a tarball, for pages that install it. */
  readonly tarball?: string
  /** A project with that package, from `findInstalledProject`: a page that installs it into an empty project gets a copy. */
  readonly installed?: string
  /** Runs only the shell blocks with one of these words. */
  readonly runs?: readonly string[]
  /** A folder of programs that the page needs, searched before PATH. */
  readonly programs?: string
  readonly variables?: Readonly<Record<string, string>>
  /** Changes a step before it runs, adds others to it, or returns undefined to skip it. */
  readonly adapt?: (step: Step) => Step | readonly Step[] | undefined
}

export interface FollowedPage {
  /** What each shell block printed on stdout, in the order of the page. */
  readonly outputs: readonly string[]
  readonly folder: string
  /** The free port that stands for a port of the page. */
  readonly ports: ReadonlyMap<string, number>
}

/** A command for the steps of a test: stops the service that a page started without --port. */
export const STOP_SERVICE = `stop_server 'service-default'`

/** Follows a page within a test, and ends its processes with the test. Rejects with the output if a command fails. */
export async function followPage(page: string, options: ReaderOptions = {}): Promise<FollowedPage> {
  const folder = mkdtempSync(path.join(scratch, 'reader-'))
  const home = mkdtempSync(path.join(scratch, 'home-'))
  symlinkSync(path.join(ROOT, 'examples'), path.join(folder, 'examples'))
  const bin = path.join(home, 'bin')
  writeShims(bin, options)
  const ports = new Map(
    await Promise.all(PAGE_PORTS.map(async (port) => [port, await findFreePort()] as const)),
  )
  const first: Step[] = options.demo
    ? [{ kind: 'serve', text: `npm start -- ${options.demo.map((flag) => `'${flag}'`).join(' ')}`, line: 0 }]
    : []
  const adapted = readSteps(page, options.runs).flatMap((step) =>
    options.adapt ? (options.adapt(step) ?? []) : step,
  )
  const steps = [...first, ...adapted].map((step) => ({ ...step, text: replaceNetwork(step.text, ports) }))
  const script = [PRELUDE, ...steps.map((step, index) => formatStep(step, index, home))].join('\n')
  const printed = await runShell(page, script, folder, {
    PATH: [bin, ...(options.programs ? [options.programs] : []), process.env['PATH']].join(path.delimiter),
    VERSO_PORT: String(ports.get('8080')),
    VERSO_MAX_EVENT_LOOP_DELAY: '0s',
    // Vite prints its address without colours only then.
    NO_COLOR: '1',
    FORCE_COLOR: undefined,
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
    ...options.variables,
  })
  const sections = printed.split(STEP_MARK).slice(1 + first.length)
  const outputs = sections
    .filter((_, index) => adapted[index]?.kind !== 'file')
    .map((text) => text.replace(/^\d+\n/, ''))
  return { outputs, folder, ports }
}

/**
 * Servers run in process groups of their own, so that one signal ends a server and the npm that started it. All other commands run in the
 * group of the shell. A signal to that group ends them, and the shell then stops the servers.
 */
const PRELUDE = `
set -e
declare -A servers
stop_server() {
  if [ -z "\${servers[$1]}" ]; then return 0; fi
  kill -TERM -- "-\${servers[$1]}" 2>/dev/null || true
  # The shell of the job ends at once; the server first finishes its work.
  while kill -0 -- "-\${servers[$1]}" 2>/dev/null; do sleep 0.05; done
  unset "servers[$1]"
}
await_server() {
  for _ in $(seq ${START_TIMEOUT_S * 10}); do
    if grep -sqE 'listening on |Local: ' "$2"; then return 0; fi
    if ! kill -0 "\${servers[$1]}" 2>/dev/null; then break; fi
    sleep 0.1
  done
  cat "$2" >&2; return 1
}
trap 'for name in "\${!servers[@]}"; do stop_server "$name"; done' EXIT
`

function formatStep(step: Step, index: number, home: string): string {
  const mark = `printf '${STEP_MARK}${index}\\n'`
  if (step.kind === 'file') {
    const file = step.path ?? ''
    return `${mark}\nmkdir -p "$(dirname '${file}')"\ncat > '${file}' <<'END_OF_FILE'\n${step.text}END_OF_FILE`
  }
  if (step.kind === 'run') return `${mark}\n${step.text}`
  const lines = step.text.trimEnd().split('\n')
  const server = lines.pop() ?? ''
  // A page that starts the service again has told the reader to stop the first one.
  const port = /--port (\d+)/.exec(server)?.[1] ?? 'default'
  const name = server.includes('npx vite') ? 'page' : `service-${port}`
  const log = path.join(home, `server-${index}.log`)
  return [
    mark,
    ...lines,
    `stop_server '${name}'`,
    'set -m',
    `{ ${server}\n} > '${log}' 2>&1 &`,
    `servers['${name}']=$!`,
    'set +m',
    `await_server '${name}' '${log}'`,
  ].join('\n')
}

function replaceNetwork(text: string, ports: ReadonlyMap<string, number>): string {
  return text
    .replaceAll(/\b\d{4}\b/g, (number) => String(ports.get(number) ?? number))
    .replaceAll('0.0.0.0', '127.0.0.1')
}

/** `npm run verso --` and `npm start` run the program of this checkout, as they do in the folder of the reader. `npm install` takes the tarball. */
function writeShims(bin: string, { tarball = '', installed = '' }: ReaderOptions): void {
  mkdirSync(bin, { recursive: true })
  const npm = path.join(bin, 'npm')
  const vite = path.join(ROOT, 'node_modules/vite')
  const typescript = path.join(ROOT, 'node_modules/@typescript/native')
  const jiti = path.join(ROOT, 'node_modules/jiti')
  writeFileSync(
    npm,
    `#!/usr/bin/env bash
bin=$(dirname "$0"); PATH=\${PATH#"$bin:"}
if [ "$1" = run ]; then shift; [ "$1" = -s ] && shift; [ "$1" = verso ] && { shift 2; exec '${process.execPath}' '${MAIN}' "$@"; }; set -- run "$@"; fi
if [ "$1" = start ]; then shift; [ "$1" = -- ] && shift; exec '${process.execPath}' '${MAIN}' demo "$@"; fi
if [ "$*" = 'install verso-records' ] && [ -n '${installed}' ] && [ ! -e node_modules ]; then
  cp -a --link '${installed}/node_modules' .
  cp '${installed}/package-lock.json' .
  exec npm pkg set 'dependencies.verso-records=file:${tarball}'
fi
words=()
for word in "$@"; do
  case "$word" in
    verso-records|verso-records@*) words+=('${tarball}') ;;
    vite) words+=('${vite}') ;;
    typescript) words+=('${typescript}') ;;
    jiti) words+=('${jiti}') ;;
    *) words+=("$word") ;;
  esac
done
exec npm "\${words[@]}"
`,
  )
  chmodSync(npm, 0o755)
}

async function runShell(
  page: string,
  script: string,
  cwd: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const env = { ...process.env, ...variables }
  const shell = spawn('bash', ['-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let [stdout, stderr] = ['', '']
  shell.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  shell.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const closed = once(shell, 'close') as Promise<[number | null]>
  stopWithTest(shell, closed)
  const [code] = await closed
  if (code !== 0)
    throw new Error(`${page} failed with ${code}:\n${stdout.slice(-3_000)}\n${stderr.slice(-3_000)}`)
  return stdout
}

/** Ends the shell, its commands and its servers if the test times out, or if the process of the tests exits. */
function stopWithTest(shell: ChildProcess, closed: Promise<unknown>): void {
  const stop = () => {
    if (shell.pid !== undefined && shell.exitCode === null && shell.signalCode === null)
      process.kill(-shell.pid, 'SIGTERM')
  }
  process.once('exit', stop)
  onTestFinished(async () => {
    process.off('exit', stop)
    stop()
    // The error belongs to the test.
    await closed.catch(() => undefined)
  })
}

export async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
