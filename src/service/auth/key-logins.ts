// Authenticates requests with an API key.
import { summarizeError } from '../../errors.js'
import { NECESSARY_TRANSACTION, type Queryable } from '../../store/engine/database.js'
import { findApiKey, saveApiKeyUse } from '../../store/auth/keys.js'
import { saveLoginFailure } from '../../store/auth/login-failures.js'
import { toUserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { appendEvent } from './events.js'
import { isKeyFormat, toStoredKey } from './keys.js'
import { usePrincipal, type CachedSession } from '../context/session-cache.js'
import { buildAddressKeys, FAILURE_WINDOW_MS, recordFailure, refuseIfThrottled } from './throttle.js'

/** The shortest time between two updates of the last use of a key: an update for every request would cost too much. */
const KEY_USED_INTERVAL_MS = 60_000

/** Returns the user with the permissions of the key; undefined if the key is unknown or has expired. */
export async function authenticateKey(app: App, key: string): Promise<Principal | undefined> {
  if (!isKeyFormat(key)) return undefined
  return usePrincipal(await app.sessionCache.find(key, () => loadKeySession(app, key)), app.clock.now())
}

async function loadKeySession(app: App, key: string): Promise<CachedSession | undefined> {
  const found = await findApiKey(app.db.reader, app.db.dialect, toStoredKey(key))
  if (!found || found.user.disabled) return undefined
  const { id, expiresMs, usedMs } = found.key
  const access = { revocations: found.revocations, isOpen: (db: Queryable) => isKeyOpen(app, db, key) }
  return {
    kind: 'key',
    principal: {
      ...(await app.authorizer.resolvePrincipal(
        { ...toUserIdentity(found.user), keyId: id },
        found.permissionsVersion,
      )),
      access,
    },
    lastMs: expiresMs - 1,
    maxIdleMs: Infinity,
    usedMs: usedMs ?? -Infinity,
    useIntervalMs: KEY_USED_INTERVAL_MS,
    recordUse: (now) => {
      markKeyUsedInBackground(app, id, now)
    },
  }
}

async function isKeyOpen({ clock, db: { dialect } }: App, db: Queryable, key: string): Promise<boolean> {
  const found = await findApiKey(db, dialect, toStoredKey(key))
  return found !== undefined && !found.user.disabled && found.key.expiresMs > clock.now()
}

/** Counts an invalid key as a failure of its address. A valid key is checked first, so it is never throttled. */
export async function recordInvalidKey(app: App, address: string): Promise<void> {
  const keys = buildAddressKeys(address)
  await refuseIfThrottled(app, keys)
  await app.db.transaction(async (tx) => {
    const failureKey = `key-refused ${keys.map(({ key }) => key).join()}`
    const { failures } = await saveLoginFailure(tx, failureKey, app.clock.now(), FAILURE_WINDOW_MS)
    if (failures === 1) await appendEvent(app, tx, { kind: 'key-refused', address })
  }, NECESSARY_TRANSACTION)
  await recordFailure(app, keys)
}

/** Runs beside the request: a read neither waits for this write nor fails with it. */
function markKeyUsedInBackground(app: App, id: number, nowMs: number): void {
  const beforeMs = nowMs - KEY_USED_INTERVAL_MS
  app.db
    .transaction((tx) => saveApiKeyUse(tx, app.db.dialect, id, { nowMs, beforeMs }))
    .catch((error: unknown) => {
      app.log.warn(summarizeError(error), 'could not update the last use of an API key')
    })
}
