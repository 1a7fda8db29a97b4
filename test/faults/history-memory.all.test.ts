// Reading a history takes no more memory than one page of it, however large its changes are. Reading it whole exceeds the limit.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { newLocation, onEveryEngine } from '../targets.js'

const HEAP_MB = 96
const READ = fileURLToPath(new URL('history-memory.mjs', import.meta.url))

async function run(args: readonly string[]): Promise<{ isDone: boolean; stdout: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [`--max-old-space-size=${HEAP_MB}`, READ, ...args], (error, stdout) => {
      resolve({ isDone: error === null, stdout })
    })
  })
}

onEveryEngine((engine) => {
  test(`60 changes of 2 MB are read with a heap of ${HEAP_MB} MB; the mutant without pages runs out of memory`, async () => {
    const location = await newLocation(engine)
    const answer = { text: 'x', changes: 61, isInPages: true, total: 61, newest: 60, oldest: 0 }
    expect(await run([location.url])).toEqual({
      isDone: true,
      stdout: `written\n${JSON.stringify(answer)}\n`,
    })
    location.remove()
    const other = await newLocation(engine)
    expect(await run([other.url, 'whole'])).toEqual({ isDone: false, stdout: 'written\n' })
    other.remove()
  })
})
