// Runs one search after the other for the service that started this process. See sqlite-searcher.ts.
import { Refusal } from '../../errors.js'
import type { Row, SqlValue } from '../engine/database.js'
import { connect, Session } from './connection.js'
import { patiently } from './errors.js'

const PATIENCE_MS = 5_000

export interface Question {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** The parts of an error that `translate` goes by: `code` and `errcode` do not cross with an error. */
export interface Trouble {
  readonly message: string
  readonly code?: unknown
  readonly errcode?: unknown
}

export type Answer = 'ready' | { readonly rows: Row[] } | { readonly trouble: Trouble }

const [file = ''] = process.argv.slice(2)
let session: Session | undefined

function open(): Session {
  if (!session) {
    const connection = connect(file, true)
    // What is sorted may be large: not in memory.
    connection.exec('pragma temp_store = file')
    session = new Session(connection)
  }
  return session
}

async function find({ sql, params }: Question): Promise<Answer> {
  try {
    return { rows: await patiently(Date.now() + PATIENCE_MS, () => open().all(sql, params)) }
  } catch (error) {
    return { trouble: describe(error instanceof Refusal ? error.cause : error) }
  }
}

function describe(error: unknown): Trouble {
  if (!(error instanceof Error)) return { message: String(error) }
  const { message, code, errcode }: Trouble = error
  return { message, code, errcode }
}

function tell(answer: Answer): void {
  process.send?.(answer)
}

process.on('message', (question: Question) => void find(question).then(tell))
// The service has ended, in whatever way.
process.on('disconnect', () => process.exit())
// A terminal and some supervisors signal every process: the service decides when its searches end.
process.on('SIGINT', () => undefined).on('SIGTERM', () => undefined)
try {
  // Not at the cost of the first search, which may have little time.
  open()
} catch {
  // That search tries again, and says why it could not.
}
tell('ready')
