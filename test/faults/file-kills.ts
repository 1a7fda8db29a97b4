// `kill -9` at random times of many uploads, replacements and removals; after each restart every acknowledged write must be there.
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { VersoError } from '../../src/errors.js'
import { openDatabase } from '../../src/store/open.js'
import { auditFiles } from '../file-audit.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, preparedLocation, USERNAME, type Engine } from '../targets.js'
import { untilNobodyWrites } from './kills.js'
import { startServerProcess } from './server-process.js'

const MODEL = 'doc.Paper'
const WORKERS = 6
const WRITES = [10, 60] as const
const MAX_LOAD_MS = 3_000
const MAX_BYTES = 600_000

/** The possible contents of a record: one, or two if the response was lost. Null is an empty field, undefined no record. */
type Holding = readonly (string | null | undefined)[]

export interface FileKills {
  readonly acknowledged: number
  readonly violations: readonly string[]
}

export async function killUploads(engine: Engine, kills: number): Promise<FileKills> {
  const location = await preparedLocation(engine)
  const journal = new FileJournal()
  const violations: string[] = []
  let server = await startServerProcess(location.url)
  try {
    for (let kill = 1; kill <= kills && violations.length === 0; kill++) {
      const client = await HttpClient.login(server.url, USERNAME, PASSWORD)
      let isOver = false
      const workers = Array.from({ length: WORKERS }, () => journal.keepWriting(client, () => isOver))
      const enough = journal.acknowledged + randomInt(...WRITES)
      const deadline = Date.now() + MAX_LOAD_MS
      while (journal.acknowledged < enough && Date.now() < deadline) await sleep(1)
      isOver = true
      await server.kill()
      await Promise.all(workers)
      server = await startServerProcess(location.url)
      const found = await checkStored(engine, location.url, server.url, journal)
      violations.push(...found.map((violation) => `kill ${kill}: ${violation}`))
    }
  } finally {
    await server.kill()
    location.remove()
  }
  return { acknowledged: journal.acknowledged, violations }
}

async function checkStored(
  engine: Engine,
  url: string,
  served: string,
  journal: FileJournal,
): Promise<string[]> {
  const db = await openDatabase(url, { poolSize: 3, statementTimeoutMs: 10_000 })
  try {
    if (engine === 'postgres') await untilNobodyWrites(db.reader)
    const client = await HttpClient.login(served, USERNAME, PASSWORD)
    return [...(await auditFiles(db, url)).violations, ...(await journal.check(client))]
  } finally {
    await db.close()
  }
}

class FileJournal {
  acknowledged = 0
  readonly #holdings = new Map<number, Holding>()

  /** Creates a record with a file, replaces it, clears it and deletes the record, until it is told to stop or the server is gone. */
  async keepWriting(client: HttpClient, isOver: () => boolean): Promise<void> {
    try {
      while (!isOver()) await this.#writeSome(client, isOver)
    } catch (error) {
      // An error response is a defect here; anything else is a lost connection.
      if (error instanceof VersoError) throw error
    }
  }

  async #writeSome(client: HttpClient, isOver: () => boolean): Promise<void> {
    const made = await this.#upload(client, { title: 'Paper' })
    let { version } = made
    for (let step = 0; step < 4 && !isOver(); step++) {
      const choice = randomInt(4)
      if (choice === 0) {
        this.#mayBecome(made.id, null)
        await client.clear(MODEL, made.id, 'scan', { version: version++ })
        this.#became(made.id, null)
      } else if (choice === 1) {
        this.#mayBecome(made.id, undefined)
        await client.remove(MODEL, made.id)
        this.#became(made.id, undefined)
        return
      } else await this.#upload(client, { id: made.id, version: version++ })
    }
  }

  async #upload(
    client: HttpClient,
    data: { readonly id?: number; readonly version?: number; readonly title?: string },
  ) {
    const bytes = randomBytes(randomInt(MAX_BYTES))
    const digest = createHash('sha256').update(bytes).digest('hex')
    if (data.id !== undefined) this.#mayBecome(data.id, digest)
    const content = Readable.from([bytes])
    const { data: record } = await client.upload(MODEL, { data, field: 'scan', content })
    this.#became(record.id, digest)
    return record
  }

  #mayBecome(id: number, holding: string | null | undefined): void {
    this.#holdings.set(id, [...(this.#holdings.get(id) ?? []), holding])
  }

  #became(id: number, holding: string | null | undefined): void {
    this.#holdings.set(id, [holding])
    this.acknowledged++
  }

  /** Compares the acknowledged contents with the downloads. */
  async check(client: HttpClient): Promise<string[]> {
    const violations: string[] = []
    for (const [id, possible] of this.#holdings) {
      const found = await holdingOf(client, id)
      if (!possible.includes(found))
        violations.push(`${MODEL} ${id} holds ${String(found)}, not ${possible.map(String).join(' or ')}`)
    }
    // From now on the audit checks if these files are complete.
    this.#holdings.clear()
    return violations
  }
}

async function holdingOf(client: HttpClient, id: number): Promise<string | null | undefined> {
  try {
    const file = await client.download(MODEL, id, 'scan')
    if (!file) return null
    const digest = createHash('sha256')
    for await (const chunk of file.content) digest.update(chunk)
    return digest.digest('hex')
  } catch (error) {
    if (error instanceof VersoError && error.kind === 'not-found') return undefined
    throw error
  }
}
