// The worker process: runs one query after the other for the service that started it. See query-pool.ts.
import { VersoError } from '../../errors.js'
import type { Row, SqlValue } from '../engine/database.js'
import { openConnection, SqliteSession } from './connection.js'
import { computeBusyDeadline, retryWhileBusy } from './errors.js'

export type WorkerMode = 'read' | 'write'

export interface WorkerRequest {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** The properties that `translateSqliteError` needs. Sent as an error, `code` and `errcode` would be lost. */
export interface WorkerError {
  readonly message: string
  readonly code?: unknown
  readonly errcode?: unknown
}

export type WorkerResponse = 'ready' | { readonly rows: Row[] } | { readonly trouble: WorkerError }

const [file = '', mode = 'read'] = process.argv.slice(2)
let session: SqliteSession | undefined

function openWorkerSession(): SqliteSession {
  if (!session) {
    const connection = openConnection(file, mode === 'read')
    // Sorts can be large, so they must not use memory.
    connection.exec('pragma temp_store = file')
    session = new SqliteSession(connection)
  }
  return session
}

async function answerRequest({ sql, params }: WorkerRequest): Promise<WorkerResponse> {
  try {
    return {
      rows: await retryWhileBusy(computeBusyDeadline(), () => openWorkerSession().all(sql, params)),
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

function sendResponse(response: WorkerResponse): void {
  // If the service has ended, nobody receives the response.
  process.send?.(response, undefined, undefined, () => undefined)
}

process.on('message', (request: WorkerRequest) => void answerRequest(request).then(sendResponse))
// The service has ended or crashed.
process.on('disconnect', () => process.exit())
// A terminal and some supervisors signal every process. The service decides when its workers end.
process.on('SIGINT', () => undefined).on('SIGTERM', () => undefined)
try {
  // Opened now, so that it does not use up the time limit of the first query.
  openWorkerSession()
} catch {
  // The first query tries again and reports the error.
}
sendResponse('ready')
