// Databases with all tables and the test account. A database that is needed again is copied from the first one.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { hash } from '@node-rs/argon2'
import { inject } from 'vitest'
import type { ModelSource } from '../src/model/catalog/catalog.js'
import { addUser } from '../src/service/auth/accounts.js'
import { createApp } from '../src/service/create-app.js'
import { USERS_TABLE } from '../src/store/auth/accounts.js'
import { models as fixtures } from './models.js'
import { createDatabase } from './postgres.js'

export type Engine = 'sqlite' | 'postgres'

export const USERNAME = 'ada'
export const PASSWORD = 'correct horse battery staple'

/** The location of one database that is deleted after the tests. */
export interface DatabaseLocation {
  readonly url: string
  remove(): void
}

/** Creates an empty database, or a copy of `original`. */
export async function newLocation(engine: Engine, original?: string): Promise<DatabaseLocation> {
  if (engine === 'postgres')
    return { url: await createDatabase(inject('postgresUrl'), original), remove: () => undefined }
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-test-'))
  const file = path.join(folder, 'verso.db')
  if (original !== undefined) copyFileSync(fileOf(original), file)
  return {
    url: `sqlite:${file}`,
    remove: () => {
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function fileOf(url: string): string {
  return url.slice('sqlite:'.length)
}

/** The parameters of a cheap password hash, which makes logins fast. */
const CHEAP = { memoryCost: 8, timeCost: 1, parallelism: 1 }

const made: DatabaseLocation[] = []
process.once('exit', () => {
  for (const location of made) location.remove()
})

/** The URL of the first database by engine and models; undefined after the first request, which creates none to copy. */
const originals = new Map<string, Promise<string> | undefined>()

/** Creates a database with the tables and the account that `startService` creates. */
export async function preparedLocation(
  engine: Engine,
  models: readonly ModelSource[] = fixtures,
): Promise<DatabaseLocation> {
  const key = `${engine} ${JSON.stringify(models)}`
  // Most sets of models are used once, so the first request makes no original.
  if (models !== fixtures && !originals.has(key)) {
    originals.set(key, undefined)
    return newLocation(engine)
  }
  const original = originals.get(key) ?? prepare(engine, models)
  originals.set(key, original)
  return newLocation(engine, await original)
}

async function prepare(engine: Engine, models: readonly ModelSource[]): Promise<string> {
  const location = await newLocation(engine)
  made.push(location)
  const { url } = location
  const app = await createApp({ models, settings: { db: url } })
  await addUser(app, { username: USERNAME, name: 'Ada', password: PASSWORD, roles: ['administrator'] })
  const cheap = await hash(PASSWORD, CHEAP)
  await app.db.transaction((tx) =>
    tx.run(`update ${USERS_TABLE} set "password" = ? where "username" = ?`, [cheap, USERNAME]),
  )
  await app.close()
  return url
}
