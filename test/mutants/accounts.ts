// Mutants of the checks that protect accounts.
import { SessionCache, usePrincipal, type CachedSession } from '../../src/service/context/session-cache.js'
import type { UserIdentity } from '../../src/service/context/identity.js'
import type { Principal } from '../../src/service/context/principal.js'
import { Authorizer } from '../../src/service/context/authorizer.js'
import type { Database, Row, Transaction } from '../../src/store/engine/database.js'
import { VERSIONS_TABLE } from '../../src/store/auth/permissions-version.js'
import { faceOf } from './records.js'
import { unshared, unsharedTransaction } from '../queryables.js'

/** Resolves permissions once and ignores their changes. */
export class DeafAuthorizer extends Authorizer {
  override async resolvePrincipal(identity: UserIdentity): Promise<Principal> {
    return super.resolvePrincipal(identity, 1)
  }
}

/** Transactions that change permissions do not update the permissions version, so they no longer wait for each other. */
export function withoutTurns(db: Database): Database {
  return {
    ...faceOf(db),
    transaction: (work, options) =>
      db.transaction(
        (tx) =>
          work(
            unsharedTransaction({
              all: (sql, params) => tx.all(sql, params),
              insert: (sql, params) => tx.insert(sql, params),
              run: async (sql, params) =>
                sql.startsWith(`insert into ${VERSIONS_TABLE}`) ? 1 : tx.run(sql, params),
            }),
          ),
        options,
      ),
  }
}

/** Ends the current session with all others and restores it as it was when the transaction began. */
export function reopeningSessions(db: Database): Database {
  const reopening = (tx: Transaction): Transaction => {
    let sessions: Row[] | undefined
    return unsharedTransaction({
      all: async (sql, params) => {
        sessions ??= await tx.all('select hash, user_id, created_ms, seen_ms from verso_session')
        return tx.all(sql, params)
      },
      insert: (sql, params) => tx.insert(sql, params),
      run: async (sql, params = []) => {
        const isEnd = sql.startsWith('delete from verso_session where user_id = ?')
        const kept = isEnd ? sessions?.find(({ hash }) => hash === params[1]) : undefined
        if (!kept) return tx.run(sql, params)
        const ended = await tx.run('delete from verso_session where user_id = ?', params.slice(0, 1))
        const insert = 'insert into verso_session (hash, user_id, created_ms, seen_ms) values (?, ?, ?, ?)'
        await tx.run(insert, Object.values(kept))
        return ended
      },
    })
  }
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(reopening(tx)), options),
  }
}

/** Checks a permission once in a transaction, although the record is read again later. */
export function askingOnce(db: Database): Database {
  const remembering = (tx: Transaction): Transaction => {
    const answers = new Map<string, Row[]>()
    return unsharedTransaction({
      run: (sql, params) => tx.run(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      all: async (sql, params) => {
        if (!sql.startsWith('select 1 as "one", case when ')) return tx.all(sql, params)
        const answer = answers.get(sql) ?? (await tx.all(sql, params))
        answers.set(sql, answer)
        return answer
      },
    })
  }
  return {
    ...faceOf(db),
    transaction: (work, options) => db.transaction((tx) => work(remembering(tx)), options),
  }
}

/** Caches sessions without expiry. */
export class TrustingSessionCache extends SessionCache {
  constructor() {
    super(() => 0)
  }
}

/** Accepts a session id as a key, and a key as a session id. */
export class KindlessSessionCache extends SessionCache {
  override use(_kind: CachedSession['kind'], secret: string | undefined, now: number): Principal | undefined {
    return usePrincipal(this.get(secret ?? ''), now)
  }
}

/** Ends sessions, keys and accounts without a new permissions version, so other nodes do not notice. */
export function keepingAccessEnds(db: Database): Database {
  const silent = (tx: Transaction): Transaction =>
    unsharedTransaction({
      all: (sql, params) => tx.all(sql, params),
      insert: (sql, params) => tx.insert(sql, params),
      run: async (sql, params) =>
        sql.startsWith(`insert into ${VERSIONS_TABLE}`) && params?.[0] !== 'rights' ? 1 : tx.run(sql, params),
    })
  return { ...faceOf(db), transaction: (work, options) => db.transaction((tx) => work(silent(tx)), options) }
}

/** Caches sessions without the permissions version they were read at. */
export class ForgettingAccess extends SessionCache {
  override async find(
    secret: string,
    look: () => Promise<CachedSession | undefined>,
  ): Promise<CachedSession | undefined> {
    return super.find(secret, async () => {
      const found = await look()
      if (!found) return undefined
      const { user, permissions, roles, permissionsVersion } = found.principal
      return { ...found, principal: { user, permissions, roles, permissionsVersion } }
    })
  }
}

/** Returns the wrong account as the newest one. */
export function withOtherNewestUser(db: Database): Database {
  const changed = (sql: string) => sql.replace('max("id")', '1 + coalesce(max("id"), 0)')
  return { ...faceOf(db), reader: unshared({ all: (sql, params) => db.reader.all(changed(sql), params) }) }
}
