// Mutants of the delivery of webhooks.
import { request } from 'node:http'
import type { EgressOptions } from '../../src/service/egress/call.js'
import { resolveAddresses, readHost } from '../../src/service/egress/destination.js'
import type { Database, Transaction } from '../../src/store/engine/database.js'
import { faceOf } from './records.js'
import { unshared, unsharedTransaction } from '../queryables.js'

/** Moves the cursor of a webhook before its call is answered. */
export function movesBeforeAnswer(db: Database): Database {
  const moving = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      run: async (sql, params) => {
        const changed = await tx.run(sql, params)
        if (sql.startsWith('update verso_webhook set lease = ?'))
          await tx.run('update verso_webhook set position = until_seq where lease = ?', params?.slice(0, 1))
        return changed
      },
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(moving(tx)), options) }
}

/** Delivers while another node delivers, too. */
export function withoutLease(db: Database): Database {
  const LEASED = ' and next_ms <= ? and (lease is null or leased_until_ms <= ?)'
  const free = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      run: (sql, params) =>
        sql.endsWith(LEASED) ? tx.run(sql.replace(LEASED, ''), params?.slice(0, -2)) : tx.run(sql, params),
    })
  const blind: Database['reader'] = unshared({
    all: async (sql, params) => {
      const rows = await db.reader.all(sql, params)
      return rows.map((row) => ('lease' in row ? { ...row, lease: null } : row))
    },
  })
  return {
    ...faceOf(db),
    reader: blind,
    transaction: (work, options) => db.transaction((tx) => work(free(tx)), options),
  }
}

/** Checks the address of a name, then calls it by name, which resolves it again. */
export async function callByName(
  { egressPolicy, resolve }: EgressOptions,
  url: string,
  body: string,
): Promise<number> {
  const target = new URL(url)
  await resolveAddresses(readHost(target), egressPolicy, resolve)
  return new Promise((done, reject) => {
    const sent = request({
      ...{ host: readHost(target), port: target.port, path: target.pathname, method: 'POST', agent: false },
      lookup: (host, _, answer) => {
        void resolve(host).then((found) => {
          answer(null, [...found])
        })
      },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.resume()
      done(response.statusCode ?? 0)
    })
    sent.end(body)
  })
}
