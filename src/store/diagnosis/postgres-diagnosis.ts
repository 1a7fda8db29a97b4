// Checks a PostgreSQL database over one connection that reads only.
import pg from 'pg'
import { pluralize } from '../../model/values/plural.js'
import type { Queryable, Row } from '../engine/database.js'
import { readErrorCode } from '../engine/file-errors.js'
import { FunctionQueryable } from '../engine/unshared.js'
import { postgresDialect } from '../postgres/dialect.js'
import { numberPlaceholders } from '../postgres/statements.js'
import {
  createDiagnosis,
  diagnoseClock,
  diagnoseStoredTime,
  diagnoseTables,
  type Diagnosis,
} from './diagnosis.js'

const CONNECT_TIMEOUT_MS = 5_000
const STATEMENT_TIMEOUT_MS = 5_000
/** Beside those of --pool-size, a node opens one that receives notifications and one that notices silence. */
const EXTRA_CONNECTIONS = 2

/** Advice for errors of a connection, by their code. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Start the server, or check the host and the port in VERSO_DB.',
  ENOTFOUND: 'Check the host in VERSO_DB, and the DNS settings of this computer.',
  EAI_AGAIN: 'Check the DNS settings of this computer.',
  ETIMEDOUT: 'Check the network and the firewall between this computer and the server.',
  EHOSTUNREACH: 'Check the network and the firewall between this computer and the server.',
  ECONNRESET: 'Check the log of the server, and whether it requires TLS (sslmode=require).',
  '28P01':
    'Correct the user and the password in VERSO_DB, or set the password of the role: alter role … password ….',
  '28000': 'Permit this user, database and address in pg_hba.conf of the server.',
  '3D000': 'Create the database: create database … owner ….',
  '53300': 'Raise max_connections of the server, or lower --pool-size of the nodes.',
  '57P03': 'Wait until the server has started; then run this again.',
}
const OTHER_ADVICE = 'Check VERSO_DB, and the log of the server.'
const NETWORK_ADVICE = 'The server does not respond: check the network, the firewall and the server.'
const PASSWORD_ADVICE = 'Set VERSO_DB to postgres://user:password@host/database.'

export async function* diagnosePostgres(url: string, poolSize: number): AsyncGenerator<Diagnosis> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS + 1_000,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    application_name: 'verso doctor',
    options: '-c default_transaction_read_only=on',
  })
  // Without this handler a lost connection would end the process; the next statement reports it.
  client.on('error', () => undefined)
  const db = new FunctionQueryable(
    async (sql, params = []) => (await client.query<Row>(numberPlaceholders(sql), [...params])).rows,
  )
  try {
    await client.connect()
    yield* diagnoseServer(db, poolSize)
  } catch (error) {
    yield describeConnectionError(error)
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function* diagnoseServer(db: Queryable, poolSize: number): AsyncGenerator<Diagnosis> {
  const [server = {}] = await db.all(
    `select current_setting('server_version') as version, pg_is_in_recovery()::int as standby, current_user as role,
      has_schema_privilege(current_schema(), 'create')::int as creates, current_setting('fsync') as fsync,
      current_setting('full_page_writes') as pages, current_setting('max_connections')::int as max,
      current_setting('superuser_reserved_connections')::int as reserved,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used,
      (select count(*)::int from pg_stat_activity where application_name = 'verso' and datname = current_database()) as nodes`,
  )
  yield createDiagnosis('database', 'ok', `PostgreSQL ${String(server['version'])} responds`)
  for (const sql of postgresDialect.startupChecks)
    for (const { fault } of await db.all(sql))
      yield createDiagnosis('database', 'problem', String(fault), OTHER_ADVICE)
  yield diagnoseWritability(server)
  // The connection of this check ends.
  const used = Number(server['used']) - 1
  const most = Number(server['max']) - Number(server['reserved'])
  const needed = poolSize + EXTRA_CONNECTIONS
  yield most - used >= needed
    ? createDiagnosis('connections', 'ok', `${used} of ${most} are used`)
    : createDiagnosis(
        'connections',
        'warning',
        `${used} of ${most} are used, so a node cannot open its ${needed}`,
        ADVICE['53300'],
      )
  const nodes = pluralize(Number(server['nodes']), 'connection')
  yield createDiagnosis('processes', 'ok', `nodes of Verso have ${nodes} to this database`)
  if (server['fsync'] !== 'on' || server['pages'] !== 'on')
    yield createDiagnosis(
      'durability',
      'warning',
      'fsync or full_page_writes of the server is off: a power cut damages the database',
      'Set both to on in postgresql.conf.',
    )
  const sentMs = Date.now()
  const [{ ms } = {}] = await db.all('select extract(epoch from clock_timestamp()) * 1000 as ms')
  const receivedMs = Date.now()
  yield diagnoseClock(Number(ms) - (sentMs + receivedMs) / 2, (receivedMs - sentMs) / 2)
  const tables = await diagnoseTables(db, postgresDialect)
  yield tables
  if (tables.level !== 'ok') return
  const stored = await diagnoseStoredTime(db, Number(ms))
  if (stored) yield stored
  yield createDiagnosis('integrity', 'ok', 'PostgreSQL has no quick check: run pg_amcheck, and verso verify')
}

function diagnoseWritability({ standby, creates, role }: Row): Diagnosis {
  if (standby === 1)
    return createDiagnosis(
      'writable',
      'problem',
      'the server is a standby: it rejects writes',
      'Name the primary server in VERSO_DB, or promote this one.',
    )
  if (creates !== 1)
    return createDiagnosis(
      'writable',
      'problem',
      `the role ${String(role)} may not create tables`,
      'Make it the owner of the database: alter database … owner to ….',
    )
  return createDiagnosis('writable', 'ok', `the role ${String(role)} may write`)
}

function describeConnectionError(error: unknown): Diagnosis {
  const all = error instanceof AggregateError ? (error.errors as unknown[]) : [error]
  const message = all.map((each) => (each instanceof Error ? each.message : String(each))).join('; ')
  const code = all.map(readErrorCode).find((each) => Object.hasOwn(ADVICE, each))
  const isPasswordMissing = /password must be a string/.test(message)
  const isSilent = /timeout|terminated/i.test(message)
  const advice = code === undefined ? OTHER_ADVICE : (ADVICE[code] ?? OTHER_ADVICE)
  return createDiagnosis(
    'database',
    'problem',
    isPasswordMissing ? 'the server requires a password' : `the server cannot be used: ${message}`,
    isPasswordMissing ? PASSWORD_ADVICE : isSilent && code === undefined ? NETWORK_ADVICE : advice,
  )
}
