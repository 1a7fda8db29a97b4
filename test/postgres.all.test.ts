import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { createDatabase, startPostgres, type PostgresOptions } from './postgres.js'

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql)
    return rows
  } finally {
    await client.end()
  }
}

async function notesAfterCrash(options: PostgresOptions): Promise<unknown[]> {
  const server = await startPostgres(options)
  try {
    const url = await createDatabase(server.url)
    await query(url, 'create table note (text text)')
    await query(url, 'checkpoint')
    await query(url, "insert into note values ('kept')")
    await server.crash()
    expect(server.pid).toBeUndefined()
    await expect(query(url, 'select 1')).rejects.toThrow('ECONNREFUSED')
    await server.restart()
    return await query(url, 'select text from note')
  } finally {
    await server.stop()
  }
}

test('PostgreSQL keeps committed rows through a crash', async () => {
  expect(await notesAfterCrash({ durable: true })).toEqual([{ text: 'kept' }])
})

test('a non-durable server loses committed rows in a crash, so the simulated crash is real', async () => {
  expect(await notesAfterCrash({ extraArgs: ['-c', 'wal_writer_delay=10s'] })).toEqual([])
})

test('a new test database is empty and isolated from the others', async () => {
  const url = inject('postgresUrl')
  const [first, second] = await Promise.all([createDatabase(url), createDatabase(url)])
  await query(first, 'create table note (text text)')
  await expect(query(second, 'select * from note')).rejects.toThrow('does not exist')
})
