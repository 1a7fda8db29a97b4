// Writers that note each acknowledged write, and a checker for what a backup beside them contains.
import { setTimeout as sleep } from 'node:timers/promises'
import { Readable } from 'node:stream'
import type { Database, Queryable } from '../../src/store/engine/database.js'
import type { Records } from '../../src/wire.js'

const [CONTACT, FOLDER] = ['crm.Contact', 'doc.Folder']
const WRITERS = 6
const BATCH_RECORDS = 3
/** Enough writes before the backup that its snapshot is in the middle of them. */
const WRITES_BEFORE = 60

interface Write {
  readonly token: string
  readonly records: number
  isAcknowledged: boolean
}

export class BackupLoad {
  readonly #writes: Write[] = []
  #isOver = false

  constructor(private readonly records: Records) {}

  /** Runs the backup beside the writers, and returns the violations of the restored database. */
  async check(
    source: Database,
    backUp: () => Promise<Buffer>,
    restore: (backup: Buffer) => Promise<Database>,
  ): Promise<string[]> {
    const writers = Promise.all(Array.from({ length: WRITERS }, (_, index) => this.#write(index)))
    // A failed writer ends the wait, and fails the test below.
    writers.catch(() => (this.#isOver = true))
    while (!this.#isOver && this.#writes.filter((write) => write.isAcknowledged).length < WRITES_BEFORE)
      await sleep(1)
    const before = this.#writes.filter((write) => write.isAcknowledged)
    const backup = await backUp()
    const after = this.#writes.length
    await sleep(50)
    this.#isOver = true
    await writers
    return this.#findViolations(source, await restore(backup), before, this.#writes.slice(after))
  }

  async #write(writer: number): Promise<void> {
    for (let count = 0; !this.#isOver; count++) {
      const token = `w${writer}-${count}.`
      const kind = count % 4
      const write = { token, records: kind === 1 ? BATCH_RECORDS : 1, isAcknowledged: false }
      this.#writes.push(write)
      if (kind === 0) await this.#createAndUpdate(token)
      else if (kind === 1) await this.#createTogether(token)
      else if (kind === 2) await this.#storeFile(token)
      else await this.#replaceFile(token)
      write.isAcknowledged = true
      await sleep(1)
    }
  }

  async #createAndUpdate(token: string): Promise<void> {
    const { id } = (await this.records.create(CONTACT, { notes: 'first' })).data
    await this.records.update(CONTACT, id, { version: 0, notes: token })
  }

  async #createTogether(token: string): Promise<void> {
    const create = { op: 'create', model: CONTACT, data: { notes: token } } as const
    await this.records.batch(Array.from({ length: BATCH_RECORDS }, () => create))
  }

  async #storeFile(token: string): Promise<void> {
    await this.records.upload(FOLDER, upload(token, { title: token }))
  }

  /** The content that is replaced must stay as long as a snapshot has its row. */
  async #replaceFile(token: string): Promise<void> {
    const { id, version } = (await this.records.upload(FOLDER, upload('old', { title: 'old' }))).data
    await this.records.upload(FOLDER, upload(token, { id, version, title: token }))
  }

  async #findViolations(
    source: Database,
    restored: Database,
    before: readonly Write[],
    after: readonly Write[],
  ): Promise<string[]> {
    const [log, full] = [await readLog(restored.reader), await readLog(source.reader)]
    const violations: string[] = []
    if (JSON.stringify(log) !== JSON.stringify(full.slice(0, log.length)))
      violations.push('the restored Log is not a prefix of the Log')
    if (log.length === full.length) violations.push('the backup has the state after all writes')
    const countOf = (token: string) => log.filter((line) => line.includes(`"after":"${token}"`)).length
    for (const { token } of before)
      if (countOf(token) === 0) violations.push(`${token} was acknowledged before the backup, and is missing`)
    for (const { token } of after)
      if (countOf(token) > 0) violations.push(`${token} was sent after the backup, and is in it`)
    for (const { token, records } of this.#writes)
      if (records > 1 && ![0, records].includes(countOf(token)))
        violations.push(`${token} is in the backup in part: ${countOf(token)} of ${records}`)
    return violations
  }
}

function upload(content: string, data: object) {
  return { data, field: 'cover', name: 'cover.txt', content: Readable.from([Buffer.from(content)]) }
}

async function readLog(db: Queryable): Promise<string[]> {
  const rows = await db.all('select seq, model, record, version, action, changes from verso_log order by seq')
  return rows.map((row) => Object.values(row).join(' '))
}
