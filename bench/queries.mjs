// Reads from a database of either engine, without the service.
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'

/** Returns the rows of each statement. */
export async function runQueries(db, statements) {
  if (db.startsWith('sqlite:')) {
    const connection = new DatabaseSync(db.slice('sqlite:'.length))
    const found = statements.map((sql) => connection.prepare(sql).all())
    connection.close()
    return found
  }
  const client = new pg.Client({ connectionString: db })
  await client.connect()
  const found = []
  for (const sql of statements) found.push((await client.query(sql)).rows)
  await client.end()
  return found
}
