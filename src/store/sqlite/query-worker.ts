// Runs one search after the other for the service that started this process. See sqlite-searcher.ts.
import { VersoError } from '../../errors.js'
import type { Row, SqlValue } from '../engine/database.js'
import { openConnection, SqliteSession } from './connection.js'
import { retryWhileBusy } from './errors.js'

const WORKER_BUSY_TIMEOUT_MS = 5_000

export interface WorkerRequest {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** The parts of an error that `translate` goes by: `code` and `errcode` do not cross with an error. */
export interface WorkerError {
  readonly message: string
  readonly code?: unknown
  readonly errcode?: unknown
}

export type WorkerResponse = 'ready' | { readonly rows: Row[] } | { readonly trouble: WorkerError }

const [file = ''] = process.argv.slice(2)
let session: SqliteSession | undefined

function openWorkerSession(): SqliteSession {
  if (!session) {
    const connection = openConnection(file, true)
    // What is sorted may be large: not in memory.
    connection.exec('pragma temp_store = file')
    session = new SqliteSession(connection)
  }
  return session
}

async function answerRequest({ sql, params }: WorkerRequest): Promise<WorkerResponse> {
  try {
    return {
      rows: await retryWhileBusy(Date.now() + WORKER_BUSY_TIMEOUT_MS, () =>
        openWorkerSession().all(sql, params),
      ),
    }
  } catch (error) {
    return { trouble: toWorkerError(error instanceof VersoError ? error.cause : error) }
  }
}

function toWorkerError(error: unknown): WorkerError {
  if (!(error instanceof Error)) return { message: String(error) }
  const { message, code, errcode }: WorkerError = error
  return { message, code, errcode }
}

function sendResponse(answer: WorkerResponse): void {
  process.send?.(answer)
}

process.on('message', (question: WorkerRequest) => void answerRequest(question).then(sendResponse))
// The service has ended, in whatever way.
process.on('disconnect', () => process.exit())
// A terminal and some supervisors signal every process: the service decides when its searches end.
process.on('SIGINT', () => undefined).on('SIGTERM', () => undefined)
try {
  // Not at the cost of the first search, which may have little time.
  openWorkerSession()
} catch {
  // That search tries again, and says why it could not.
}
sendResponse('ready')
