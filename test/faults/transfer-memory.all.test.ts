// Import and export need no more memory for many records than for few. Reading the file whole exceeds the limit.
import { execFile } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newLocation } from '../targets.js'
import { writeModels } from '../transfer/transfer-fixture.js'

const COUNT = 50_000
const HEAP_MB = 64
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const IMPORT = fileURLToPath(new URL('transfer-memory.mjs', import.meta.url))
const file = 'crm.Contact.ndjson'

let scratch: string
let models: string
beforeAll(async () => {
  scratch = mkdtempSync(path.join(tmpdir(), 'verso-memory-'))
  models = writeModels(scratch)
  const out = createWriteStream(path.join(scratch, file))
  for (let start = 1; start <= COUNT; start += 1_000) {
    const lines = Array.from({ length: 1_000 }, (_, index) => {
      const id = start + index
      return `${JSON.stringify({ id, version: 0, firstName: `F${id}`, lastName: 'L', email: `${id}@example.org`, notes: 'n'.repeat(1_000) })}\n`
    })
    if (!out.write(lines.join(''))) await once(out, 'drain')
  }
  out.end()
  await once(out, 'finish')
})
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

async function run(args: readonly string[]): Promise<{ isDone: boolean; stdout: string }> {
  return new Promise((resolve) => {
    const limited = [`--max-old-space-size=${HEAP_MB}`, ...args]
    execFile(process.execPath, limited, { cwd: scratch, maxBuffer: 2 ** 24 }, (error, stdout) => {
      resolve({ isDone: error === null, stdout })
    })
  })
}

test(`${COUNT} records are imported and exported with a heap of ${HEAP_MB} MB; the mutant that reads the file whole fails`, async () => {
  const location = await newLocation('sqlite')
  const source = path.join(scratch, file)
  expect(await run([IMPORT, location.url, models, source])).toEqual({
    isDone: true,
    stdout: `made ${COUNT}\n`,
  })
  const out = path.join(scratch, 'out')
  const exported = await run([
    MAIN,
    'export',
    '--models',
    models,
    '--db',
    location.url,
    '--out',
    out,
    '--model',
    'crm.Contact',
  ])
  expect(exported).toMatchObject({ isDone: true, stdout: expect.stringContaining(`${COUNT} records`) })
  expect(statSync(path.join(out, file)).size).toBeGreaterThan(statSync(source).size)
  location.remove()
  const other = await newLocation('sqlite')
  expect(await run([IMPORT, other.url, models, source, 'whole'])).toMatchObject({ isDone: false })
  other.remove()
})
