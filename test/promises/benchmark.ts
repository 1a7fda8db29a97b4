// Runs a benchmark for a lane. The clients are a process of their own.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LaneOptions } from './lane.js'

const FOLDER = fileURLToPath(new URL('../../bench', import.meta.url))

/** Returns what `bench/<name>.mjs` writes to its file of results. */
export function runBenchmark(name: string, words: readonly string[], { log }: LaneOptions): unknown {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-promise-'))
  try {
    const file = path.join(folder, 'results.json')
    const program = path.join(FOLDER, `${name}.mjs`)
    const { status, stdout } = spawnSync(process.execPath, [program, ...words, '--json', file], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    log(stdout)
    if (status !== 0) throw new Error(`${program} ended with ${status ?? 'a signal'}`)
    return JSON.parse(readFileSync(file, 'utf8'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
