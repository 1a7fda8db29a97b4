// The driver keeps a closed connection open until its prepared statements are garbage collected. If no other connection has the database open
// at that time, SQLite removes the WAL. The marker of a process that was killed meanwhile still says that the WAL has its last commits, so
// the next start would be refused. A connection without statements prevents that: SQLite removes no WAL while another connection is open.
import { statSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'

/** The driver finalizes a statement shortly after the collection. */
const FINALIZE_MS = 1_000

const COLLECTED = new FinalizationRegistry<WalGuard>((guard) => {
  guard.remove()
})

/** A connection without statements for each file, by inode: SQLite reuses the descriptors of closed connections only for others with its flags. */
const KEEPERS = new Map<string, WalKeeper>()

interface WalKeeper {
  readonly inode: string
  readonly connection: InstanceType<typeof DatabaseSync>
  guardCount: number
}

/** Keeps the WAL from `hold` until the statements of the connection are finalized. */
export class WalGuard {
  #statementCount = 0
  #keeper: WalKeeper | undefined

  constructor(private readonly file: string) {}

  /** Must be called for each prepared statement of the connection. */
  add(statement: object): void {
    this.#statementCount++
    COLLECTED.register(statement, this)
  }

  /** Must be called before the connection closes. */
  hold(): void {
    if (this.#statementCount === 0 || this.#keeper) return
    this.#keeper = openKeeper(this.file)
  }

  /** Called when a statement was collected. */
  remove(): void {
    this.#statementCount--
    if (this.#statementCount > 0) return
    setTimeout(() => {
      if (this.#statementCount === 0) this.#release()
    }, FINALIZE_MS).unref()
  }

  #release(): void {
    const keeper = this.#keeper
    this.#keeper = undefined
    if (!keeper || --keeper.guardCount > 0) return
    KEEPERS.delete(keeper.inode)
    keeper.connection.close()
  }
}

/** Returns undefined if the file was removed or is damaged. It has no WAL to keep then, or its marker stays anyway. */
function openKeeper(file: string): WalKeeper | undefined {
  let connection: InstanceType<typeof DatabaseSync> | undefined
  try {
    const { dev, ino } = statSync(file)
    const inode = `${dev}:${ino}`
    const existing = KEEPERS.get(inode)
    if (existing) {
      existing.guardCount++
      return existing
    }
    connection = new DatabaseSync(file, { readOnly: true, timeout: 0 })
    // The first read opens the WAL. `exec` leaves no statement behind.
    connection.exec('select 1 from sqlite_schema limit 1')
    const keeper = { inode, connection, guardCount: 1 }
    KEEPERS.set(inode, keeper)
    return keeper
  } catch {
    connection?.close()
    return undefined
  }
}
