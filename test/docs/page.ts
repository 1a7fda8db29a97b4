// A page of the documentation as a reader follows it: files to create and commands to paste, in order.
import { readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Words after the language of a shell block that a reader of the whole page leaves out, and the reason. Everything else is run. Their
 * syntax is checked.
 */
export const NOT_RUN: Readonly<Record<string, string>> = {
  root: 'needs systemd as the init process of the machine; the unit file and its command are tested',
  docker: 'needs a container engine; test/deploy runs the steps of the container file in a chroot',
  https: 'runs in the tests of the proxies, against their certificates',
  checkout: 'the two commands of the README, which CI runs in a clean checkout',
  faults: 'takes minutes for each lane; test/promises checks the recorder, the checker and the page',
  bench:
    'one command takes 17 minutes; bench.all.test.ts checks the options of all benchmarks, and runs one of each kind with short ones',
  'react-admin':
    'installs react-admin, which takes a minute; the tests of the data provider run its core in a browser',
  generator: 'downloads a code generator; the tests of generated clients run it',
  postgres: 'needs an installed PostgreSQL; postgres.all.test.ts runs it with a server of its own',
}

export interface Step {
  /** `file` creates a file, `run` is a shell block that ends, `serve` is one whose last command keeps running. */
  readonly kind: 'file' | 'run' | 'serve'
  readonly text: string
  /** The file to create. */
  readonly path?: string
  /** The line of the page, for messages. */
  readonly line: number
}

export interface ShellBlock {
  readonly text: string
  /** The word after `sh`. */
  readonly word: string
  readonly line: number
}

/** A command that runs until the reader presses Ctrl-C. */
const SERVER_COMMAND =
  /^\s*((\w+=('[^']*'|\S+)|env)\s+)*(npx verso (serve|dev|demo)|npm start|npm run (-s )?verso -- (serve|dev|demo)|npx vite)\b/

const FENCE = /^```(\w+)(?: ([^\n]*))?\n(.*?)^```$/gms

export function readPage(page: string): string {
  return readFileSync(path.join(ROOT, page), 'utf8')
}

/** All pages that are part of the documentation. */
export function listPages(): string[] {
  const docs = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  const pages = docs
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll(path.sep, '/')}`)
  const root = readdirSync(ROOT).filter((name) => name.endsWith('.md'))
  return [...root, ...pages].sort()
}

export function listShellBlocks(page: string): ShellBlock[] {
  return listFences(page).flatMap(({ language, info, text, line }) =>
    language === 'sh' ? [{ text, word: info, line }] : [],
  )
}

/** With `runs`, only the shell blocks with one of these words; otherwise all that NOT_RUN does not leave out. */
export function readSteps(page: string, runs?: readonly string[]): Step[] {
  const isLeftOut = (word: string) => (runs ? !runs.includes(word) : Object.hasOwn(NOT_RUN, word))
  return listFences(page).flatMap(({ language, info, text, line }): Step[] => {
    const [, title] = /^title="([^"]+)"$/.exec(info) ?? []
    if (title !== undefined) return [{ kind: 'file', path: title, text, line }]
    if (language !== 'sh' || isLeftOut(info)) return []
    const last = text.trimEnd().split('\n').at(-1) ?? ''
    return [{ kind: SERVER_COMMAND.test(last) ? 'serve' : 'run', text, line }]
  })
}

function listFences(page: string) {
  const text = readPage(page)
  return [...text.matchAll(FENCE)].map(({ 1: language = '', 2: info = '', 3: content = '', index }) => ({
    language,
    info: info.trim(),
    text: content,
    line: text.slice(0, index).split('\n').length,
  }))
}
