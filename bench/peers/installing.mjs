// Installs peers from npm, each into a folder of its own that is kept for the next run.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from '../processes.mjs'

const PLACE = fileURLToPath(new URL('../.peers', import.meta.url))
const INSTALL_MS = 300_000
const QUIET = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error']

/** Installs packages without their install scripts; `packages` are names with versions. Returns the folder. */
export async function install(name, packages, more = []) {
  const place = path.join(PLACE, name)
  const done = path.join(place, 'installed.json')
  const wanted = JSON.stringify(packages)
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted) return place
  process.stderr.write(`installing ${packages.join(' ')}\n`)
  mkdirSync(place, { recursive: true })
  writeFileSync(path.join(place, 'package.json'), JSON.stringify({ name: `peer-${name}`, private: true }))
  await runProgram('npm', ['install', ...QUIET, ...more, ...packages], { cwd: place, timeoutMs: INSTALL_MS })
  writeFileSync(done, wanted)
  return place
}

/** Returns the `require` of a peer's folder. */
export function createPeerRequire(place) {
  return createRequire(path.join(place, 'package.json'))
}

export function readPeerVersion(place, name) {
  return JSON.parse(readFileSync(path.join(place, 'node_modules', name, 'package.json'), 'utf8')).version
}
