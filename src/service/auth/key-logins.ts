// Who a key belongs to, with every request that comes with one.
import { summarizeError } from '../../errors.js'
import type { Queryable } from '../../store/engine/database.js'
import { findApiKey, saveApiKeyUse } from '../../store/auth/keys.js'
import { saveLoginFailure } from '../../store/auth/login-failures.js'
import { actorOf } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { noteEvent } from './events.js'
import { isKey, keptOf } from './keys.js'
import type { Known } from '../context/session-cache.js'
import { addressKeys, FAILURE_WINDOW_MS, noteFailure, refuseIfThrottled } from './throttle.js'

/** How often a key in use is marked, at most: a write for every request would cost too much. */
const MARK_MS = 60_000

/** The user with what the key is good for; undefined if there is no such key, or no longer. */
export async function authenticateKey(app: App, key: string): Promise<Caller | undefined> {
  if (!isKey(key)) return undefined
  const known = await app.known.find(key, () => lookUp(app, key))
  const now = app.clock.now()
  if (!known?.isAlive(now)) return undefined
  known.use(now)
  return known.caller
}

async function lookUp(app: App, key: string): Promise<Known | undefined> {
  const found = await findApiKey(app.db.reader, app.db.dialect, keptOf(key))
  if (!found || found.user.disabled) return undefined
  const { id, expiresMs } = found.key
  let { usedMs } = found.key
  const access = { ends: found.ends, isOpen: (db: Queryable) => isOpen(app, db, key) }
  return {
    caller: { ...(await app.gate.callerOf({ ...actorOf(found.user), keyId: id }, found.epoch)), access },
    isAlive: (now) => expiresMs > now,
    use: (now) => {
      if (usedMs !== undefined && now - usedMs < MARK_MS) return
      usedMs = now
      markUsed(app, id, now)
    },
  }
}

async function isOpen({ clock, db: { dialect } }: App, db: Queryable, key: string): Promise<boolean> {
  const found = await findApiKey(db, dialect, keptOf(key))
  return found !== undefined && !found.user.disabled && found.key.expiresMs > clock.now()
}

/** A wrong key counts against the address it came from. A right one is never refused because of others: it is looked at first. */
export async function noteWrongKey(app: App, address: string): Promise<void> {
  const keys = addressKeys(address)
  await refuseIfThrottled(app, keys)
  await app.db.transaction(async (tx) => {
    const place = `key-refused ${keys.map(({ key }) => key).join()}`
    const { failures } = await saveLoginFailure(tx, place, app.clock.now(), FAILURE_WINDOW_MS)
    if (failures === 1) await noteEvent(app, tx, { kind: 'key-refused', address })
  })
  await noteFailure(app, keys)
}

/** Beside the request: a reader is not to wait for a writer, nor to fail with it. */
function markUsed(app: App, id: number, now: number): void {
  app.db
    .transaction((tx) => saveApiKeyUse(tx, app.db.dialect, id, now, now - MARK_MS))
    .catch((error: unknown) => {
      app.log.warn(summarizeError(error), 'a key could not be marked as used')
    })
}
