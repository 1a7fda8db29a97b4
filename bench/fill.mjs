// Inserts millions of residents by SQL, in portions, because an import would take longer than the measurement.
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'

export const TABLE = '"bench.Resident"'
/** Country of every fifth resident; the rest is spread over 199 countries. */
export const COMMON = 'C000'
const PORTION = 250_000

/** Columns of row number `n`, as SQL expressions for both engines. */
const padTwo = (number) => `substr(cast(100 + (${number}) as text), 2)`
const COLUMNS = {
  id: 'n',
  version: '0',
  firstName: `'Ada' || (n % 97)`,
  lastName: `'Harper' || (n % 89)`,
  fullName: `'Ada' || (n % 97) || ' Harper' || (n % 89)`,
  email: `'ada.harper.' || n || '@example.org'`,
  phone: `'+1 202 555 ' || (n % 10000)`,
  notes: `'asked for the new price list; customer number ' || n`,
  country: `case when n % 5 = 0 then '${COMMON}' else 'C' || (1 + n % 199) end`,
}
const DATES = {
  dateOfBirth: `'19' || ${padTwo('50 + n % 50')} || '-' || ${padTwo('1 + n % 12')} || '-' || ${padTwo('1 + n % 28')}`,
  createdOn: `'2026-01-31T13:45:00.000Z'`,
}

/** Inserts the residents with the numbers `from` + 1 to `to`. No other process may have the database open. */
export async function fill(engine, db, from, to) {
  const write = engine === 'sqlite' ? openSqliteWriter(db) : await openPostgresWriter(db)
  for (let start = from; start < to; start += PORTION)
    await write.portion(start + 1, Math.min(start + PORTION, to))
  await write.end(to)
}

function openSqliteWriter(db) {
  const { names, values } = buildColumns((expression) => expression)
  const connection = new DatabaseSync(db.replace('sqlite:', ''))
  // A crash makes the database useless, so nothing needs to be durable.
  connection.exec('pragma synchronous = off; pragma cache_size = -200000')
  const insert = connection.prepare(
    `with recursive numbers (n) as (select ? union all select n + 1 from numbers where n < ?)
     insert into ${TABLE} (${names}) select ${values} from numbers`,
  )
  return {
    portion: async (first, last) => insert.run(first, last),
    end: async () => {
      connection.exec('pragma wal_checkpoint(truncate)')
      connection.close()
    },
  }
}

async function openPostgresWriter(db) {
  const { names, values } = buildColumns((expression, type) => `(${expression})::${type}`)
  const client = new pg.Client({ connectionString: db })
  await client.connect()
  await client.query('set synchronous_commit = off')
  return {
    portion: (first, last) =>
      client.query(
        `insert into ${TABLE} (${names}) select ${values} from generate_series($1::bigint, $2::bigint) as n`,
        [first, last],
      ),
    end: async (last) => {
      await client.query(`select setval(pg_get_serial_sequence('${TABLE}', 'id'), ${last})`)
      // Updates the visibility map, as in daily use, so that counts can use an index-only scan.
      await client.query(`vacuum (analyze) ${TABLE}`)
      await client.query('checkpoint')
      await client.end()
    },
  }
}

function buildColumns(dated) {
  const dates = {
    dateOfBirth: dated(DATES.dateOfBirth, 'date'),
    createdOn: dated(DATES.createdOn, 'timestamptz'),
  }
  const all = { ...COLUMNS, ...dates }
  return {
    names: Object.keys(all)
      .map((name) => `"${name}"`)
      .join(', '),
    values: Object.values(all).join(', '),
  }
}
