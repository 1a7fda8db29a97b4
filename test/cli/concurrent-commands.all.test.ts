// PostgreSQL: every command that opens a database runs while others write through a node, each write with an `Idempotency-Key`.
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, inject, test, vi } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { exchange, type Session } from '../faults/load-client.js'
import { statementsHeldUp } from '../faults/table-locks.js'
import { HttpClient } from '../http-client.js'
import { createDatabase } from '../postgres.js'
import { cleanUpAfterwards, PASSWORD, scratch, start, verso } from './program.js'

cleanUpAfterwards()

// Starts about thirty processes.
vi.setConfig({ testTimeout: 300_000 })

const MODELS = path.join(import.meta.dirname, '../../examples/prove')
const MODEL = 'prove.TokenList'
const WRITERS = 2
const SERVE = ['serve', '--models', MODELS, '--port', '0', '--rate-limit', '0']

/** Chains run concurrently; the commands of a chain run one after the other. */
const CHAINS: readonly (readonly (readonly string[])[])[] = [
  [
    ['user', 'list'],
    ['user', 'add', 'eve', '--password-stdin'],
    ['user', 'roles', 'eve', '--add', 'reader'],
    ['user', 'passwd', 'eve', '--password-stdin'],
    ['user', 'sessions', 'admin'],
    ['user', 'logout', 'eve'],
    ['user', 'disable', 'eve'],
    ['user', 'enable', 'eve'],
  ],
  [
    ['role', 'list'],
    ['role', 'add', 'clerk'],
    ['role', 'permit', 'clerk', MODEL, '--read', '--models', MODELS],
    ['role', 'show', 'clerk'],
    ['role', 'remove', 'clerk'],
    ['key', 'add', 'admin', '--name', 'program'],
    ['key', 'list'],
    ['key', 'revoke', '1'],
  ],
  [
    ['schema', '--models', MODELS],
    ['schema', '--models', MODELS, '--apply'],
    ['verify', '--models', MODELS],
    ['verify', '--rebuild', '--models', MODELS],
    ['history', 'show', MODEL, '1', '--models', MODELS],
    ['history', 'purge', MODEL, '1', '--models', MODELS, '--yes'],
    ['history', 'compact', '--retention', '90d'],
  ],
  [
    ['export', '--models', MODELS, '--out', 'out'],
    ['import', '--models', MODELS, 'near'],
    ['import', '--models', MODELS, 'far'],
  ],
]

/** Records with ids slightly or far above those of the writers. */
function writeImports(): void {
  for (const [folder, id] of [
    ['near', 50_000],
    ['far', 7_000_000],
  ] as const) {
    mkdirSync(path.join(scratch, folder))
    const record = { id, version: 0, run: folder, tokens: [] }
    writeFileSync(path.join(scratch, folder, `${MODEL}.ndjson`), `${JSON.stringify(record)}\n`)
  }
}

/** Creates and updates records with idempotency keys until `work` is done; returns the number of responses by status. */
async function besideWriters(session: Session, work: () => Promise<void>): Promise<Record<string, number>> {
  const answers: Record<string, number> = {}
  let [isOver, keys] = [false, 0]
  const send = async (method: string, path: string, data: object) => {
    const headers = { 'idempotency-key': `writer-${++keys}` }
    const { status, body } = await exchange(session, method, `/ws/rest/${path}`, { data }, { headers })
    answers[status] = (answers[status] ?? 0) + 1
    return (body.data as readonly WireRecord[])[0]
  }
  const isOverNow = () => isOver
  const write = async () => {
    while (!isOverNow()) {
      const made = await send('PUT', MODEL, { run: 'beside commands' })
      if (made) await send('POST', `${MODEL}/${made.id}`, { version: made.version, tokens: ['a'] })
    }
  }
  const writing = Promise.all(Array.from({ length: WRITERS }, write))
  await work().finally(() => (isOver = true))
  await writing
  return answers
}

test('every command and two more nodes start during keyed writes without lock waits on either side', async () => {
  const db = await createDatabase(inject('postgresUrl'))
  const variables = { VERSO_DB: db, VERSO_ADMIN_PASSWORD: PASSWORD }
  const { url } = await start(SERVE, variables)
  const session = await HttpClient.login(url, 'admin', PASSWORD)
  writeImports()
  const failed: object[] = []
  const runChain = async (chain: (typeof CHAINS)[number]) => {
    for (const args of chain) {
      const outcome = await verso(args, PASSWORD, { VERSO_DB: db })
      if (outcome.code !== 0) failed.push({ args, ...outcome })
    }
  }
  const startNodes = async () => {
    await start(SERVE, variables)
    await start(['demo', ...SERVE.slice(1)], { VERSO_DB: db })
  }
  let heldUp: string[] = []
  const answers = await besideWriters(session, async () => {
    heldUp = await statementsHeldUp(db, () => Promise.all([...CHAINS.map(runChain), startNodes()]))
  })
  expect(failed).toEqual([])
  expect(heldUp).toEqual([])
  expect(Object.keys(answers)).toEqual(['200'])
  expect(answers['200']).toBeGreaterThan(WRITERS)
  const [last] = (await session.find(MODEL, { sortBy: '-id', limit: 1 })).data
  expect(last?.id).toBeGreaterThanOrEqual(7_000_000)
})
