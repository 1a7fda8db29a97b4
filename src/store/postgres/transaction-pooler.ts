// Refuses a pooler in transaction mode. There a connection has the settings, prepared statements and listeners of other clients.
import pg from 'pg'
import { ConfigError } from '../../errors.js'

const TIMEOUT_MS = 3_000
/** By chance a busy pooler may give two clients different connections to the server. */
const ROUNDS = 5

/** In session mode each of two clients keeps its own session of the server. */
export async function refuseTransactionPooler(url: string): Promise<void> {
  const clients = [createClient(url), createClient(url)]
  try {
    await Promise.all(clients.map((client) => client.connect()))
    const sessions = new Set<string>()
    for (let round = 0; round < ROUNDS; round++)
      for (const [index, client] of clients.entries()) sessions.add(`${await readProcessId(client)} ${index}`)
    const processIds = new Set([...sessions].map((session) => session.split(' ')[0]))
    if (sessions.size === clients.length && processIds.size === clients.length) return
  } catch {
    // Requests report a server that cannot be reached.
    return
  } finally {
    for (const client of clients) client.connection.stream.destroy()
  }
  throw new ConfigError('The database cannot be used through this connection pooler', [
    'It assigns connections to single transactions (PgBouncer: pool_mode = transaction or statement). Connect to PostgreSQL directly, ' +
      'or set pool_mode = session for this database',
  ])
}

function createClient(url: string): pg.Client {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'verso',
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  })
  // The statement that fails reports the error.
  client.on('error', () => undefined)
  return client
}

async function readProcessId(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return String(rows[0]?.pid)
}
