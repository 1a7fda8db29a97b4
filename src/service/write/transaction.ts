// The one way to write: a transaction that does the work, keeps the answer for repeats, and appends to the Log at its end.
import { createHash } from 'node:crypto'
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { affectsPermissions } from '../../model/catalog/system-models.js'
import type { Json } from '../../model/values/value.js'
import { parseStoredJson } from '../../store/engine/database-condition.js'
import type { GroupableWrite, Transaction } from '../../store/engine/database.js'
import {
  incrementRevocationCount,
  incrementPermissionsVersion,
} from '../../store/auth/permissions-version.js'
import {
  claimIdempotencyKey,
  saveResponse,
  type IdempotencyClaim,
  type StoredResponse,
} from '../../store/records/idempotency.js'
import { appendChanges, type NewChange } from '../../store/log/log.js'
import { loadWriteState } from '../../store/schema/stored-snapshots.js'
import type { Action, SaveOptions, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { mayEndAccess, refuseIfEnded, requireAccess } from '../auth/access.js'
import { keepAnAdministrator } from '../auth/last-administrator.js'
import { withoutSecrets } from './secrets.js'
import { keepFollowing } from '../webhooks/webhook-cursor.js'
import { fitWritten, keyOf } from './written-answers.js'

export const IDEMPOTENCY_KEPT_MS = 24 * 60 * 60_000
const MAX_KEY_LENGTH = 255

/** What a repeat must be equal to. */
export interface WriteRequest {
  readonly action: Action | 'save' | 'update-mass' | 'delete-all' | 'batch' | 'revert'
  /** Undefined for a batch, whose requests name their own. */
  readonly model?: string
  readonly id?: number | undefined
  readonly version?: number | undefined
  readonly data?: unknown
  /** What an upload brings besides. */
  readonly file?: object
  /** What the answer is to show. */
  readonly wanted?: unknown
  readonly merge?: SaveOptions['merge']
  readonly patch?: boolean
  readonly secret?: string | undefined
}

export interface Writing {
  readonly tx: Transaction
  /** What the work has changed; goes into the Log. */
  readonly changes: NewChange[]
}

export async function write<T>(
  app: App,
  by: Caller,
  request: WriteRequest,
  key: string | undefined,
  work: (writing: Writing) => Promise<T>,
  /** Where it may share a transaction with others. */
  groupable?: GroupableWrite,
): Promise<WriteResult<T>> {
  const claimed = key === undefined ? undefined : claimOf(app, by, request, key)
  const attempt = async (tx: Transaction) => {
    const stored = claimed && (await claimIdempotencyKey(tx, claimed, IDEMPOTENCY_KEPT_MS))
    if (stored) {
      await requireAccess(app, tx, by)
      if (stored.digest === claimed.digest)
        return { data: answerFor(by, stored) as T, replayed: true, changes: [] }
      throw new VersoError('key-reused', 'This Idempotency-Key was used for another request: make a new one')
    }
    const changes: NewChange[] = []
    const data = fitWritten(app, await work({ tx, changes }))
    await requireState(app, tx, by, changes)
    if (changes.some(({ model }) => affectsPermissions(model))) await incrementPermissionsVersion(tx)
    await keepAnAdministrator(tx, by, changes)
    await keepFollowing(tx, changes)
    if (changes.some(mayEndAccess)) await incrementRevocationCount(tx)
    if (claimed) await saveResponse(tx, claimed, JSON.stringify(data), by.epoch ?? null)
    await appendChanges(tx, app.tables, changes)
    return { data, replayed: false, changes }
  }
  const { changes, ...written } = await app.db.transaction(attempt, { groupable })
  if (changes.some(({ model }) => affectsPermissions(model))) app.known.forget()
  if (changes.some(({ model }) => app.catalog.hasFiles(model))) await app.db.blobs.collect()
  return written
}

/** As it was; but who may see other things by now is shown of each record that it was written, and no more. */
function answerFor({ rights, epoch }: Caller, stored: StoredResponse): unknown {
  const answer = parseStoredJson(stored.response)
  if (!rights || stored.permissionsVersion === epoch) return answer
  return Array.isArray(answer) ? answer.map(keyOf) : keyOf(answer)
}

/** What a repeat under the same key must be equal to. */
export async function requestOf(
  app: App,
  model: Model,
  action: WriteRequest['action'],
  { data, ...rest }: Omit<WriteRequest, 'action' | 'model'>,
  { idempotencyKey, wanted, merge }: SaveOptions,
): Promise<WriteRequest> {
  // Nobody will ask what it was.
  if (idempotencyKey === undefined) return { action, model: model.name }
  const asked = { ...(wanted ? { wanted } : {}), ...(merge ? { merge } : {}) }
  const request = { ...rest, action, model: model.name, ...asked }
  const { data: told, secret } = await withoutSecrets(app.catalog, [{ model, data }], idempotencyKey)
  return { ...request, data: told[0], secret }
}

/**
 * What other nodes have done meanwhile: whoever was shut out writes nothing; and a node with older models would leave out the defaults and
 * computed fields that newer ones have.
 */
async function requireState(
  app: App,
  tx: Transaction,
  by: Caller,
  changes: readonly NewChange[],
): Promise<void> {
  const models = [...new Set(changes.map(({ model }) => model))]
  if (models.length === 0) return requireAccess(app, tx, by)
  const { isSchemaCurrent, revocationCount } = await loadWriteState(tx, app.shapes, models)
  await refuseIfEnded(app, tx, by, revocationCount)
  if (isSchemaCurrent) return
  const message =
    'The tables have changed since this node started: nothing was written. Restart it with the new models'
  throw new VersoError('busy', message, { retryAfterS: 5 })
}

function claimOf(app: App, by: Caller, request: WriteRequest, key: string): IdempotencyClaim {
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(key) || key.length > MAX_KEY_LENGTH) {
    throw new VersoError(
      'bad-request',
      `Idempotency-Key must be 1 to ${MAX_KEY_LENGTH} printable ASCII characters`,
    )
  }
  const digest = createHash('sha256')
    .update(JSON.stringify(ordered({ ...request, via: by.actor?.keyId } as unknown as Json)))
    .digest('base64url')
  return { userId: by.actor?.id ?? 0, key, digest, nowMs: app.clock.now() }
}

/** The same whatever the order of its keys. */
function ordered(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => ordered(item))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value as Readonly<Record<string, Json>>)
  return { object: entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, ordered(item)]) }
}
