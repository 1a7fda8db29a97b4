// Every write of records goes through here: a transaction that runs the write and its hooks, stores the answer for repeats, and appends to the Log.
import { createHash } from 'node:crypto'
import { VersoError } from '../../errors.js'
import type { FieldErrors } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import type { Json } from '../../model/values/value.js'
import { parseStoredJson } from '../../store/engine/write-health.js'
import type { GroupableWrite, Transaction } from '../../store/engine/database.js'
import {
  claimIdempotencyKey,
  saveResponse,
  type IdempotencyClaim,
  type StoredResponse,
} from '../../store/records/idempotency.js'
import { appendChanges, type NewChange } from '../../store/log/log.js'
import { loadWritePreconditions } from '../../store/records/write.js'
import type { Action, SaveOptions, WriteResult } from '../../wire.js'
import type { App, TransactionAttempt } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { refuseEndedAccess, requireAccess } from '../context/session-cache.js'
import { runAfterCommit, runBeforeCommit } from './run-hooks.js'
import { redactSecrets } from '../input/secrets.js'
import { fitsAnswer } from '../context/answer-limits.js'
import { shortenAnswer, toRecordKey } from '../context/written-answers.js'
import { createAttempt, withTransaction, type Context, type WriteContext } from '../context/context.js'

export const IDEMPOTENCY_TTL_MS = 24 * 60 * 60_000
const MAX_IDEMPOTENCY_KEY_LENGTH = 255

/** The parts of a request that a repeat under the same idempotency key must repeat. */
export interface WriteRequest {
  readonly action: Action | 'save' | 'update-mass' | 'delete-all' | 'batch' | 'revert'
  /** Undefined for a batch: each of its requests names a model. */
  readonly model?: string
  readonly id?: number | undefined
  readonly version?: number | undefined
  readonly data?: unknown
  /** The metadata of an uploaded file. */
  readonly file?: object
  /** The option `returning`. Digests in existing databases use the key `wanted`, so it stays. */
  readonly wanted?: unknown
  readonly merge?: SaveOptions['merge']
  readonly patch?: boolean
  readonly secret?: string | undefined
}

/** One attempt of a write, inside its transaction. */
export interface TransactionScope {
  readonly context: WriteContext
  /** The Changes of the attempt, which go into the Log. */
  readonly changes: NewChange[]
}

export interface WriteInTransactionOptions {
  /** A repeat under the same key gets the stored answer. */
  readonly idempotencyKey?: string | undefined
  /** Lets the write join a group commit. */
  readonly groupable?: GroupableWrite | undefined
  /** Lets the write run while the disk is full. */
  readonly isNecessary?: boolean | undefined
}

export async function writeInTransaction<T>(
  context: Context,
  request: WriteRequest,
  { idempotencyKey, groupable, isNecessary }: WriteInTransactionOptions,
  run: (scope: TransactionScope) => Promise<T>,
): Promise<WriteResult<T>> {
  const { app, principal } = context
  const idempotencyClaim =
    idempotencyKey === undefined ? undefined : buildIdempotencyClaim(context, request, idempotencyKey)
  let attempts = 0
  const attempt = async (tx: Transaction) => {
    attempts++
    const stored = idempotencyClaim && (await claimIdempotencyKey(tx, idempotencyClaim, IDEMPOTENCY_TTL_MS))
    if (stored) {
      await requireAccess(app, tx, principal)
      if (stored.digest === idempotencyClaim.digest)
        return { data: replayAnswer(principal, stored) as T, replayed: true, changes: [] }
      throw new VersoError(
        'key-reused',
        'This Idempotency-Key was used for a different request: send a new key; nothing was changed',
      )
    }
    const changes: NewChange[] = []
    const writing = withTransaction(context, tx, createAttempt(attempts))
    const written = await run({ context: writing, changes }).catch((error: unknown) => {
      throw addFieldErrors(writing.attempt, error)
    })
    const data = fitsAnswer(app, written) ? written : shortenAnswer(written)
    await requireCurrentState(app, tx, principal, changes)
    if (hasTransactionHooks(app, changes)) await runBeforeCommit(writing, changes)
    if (idempotencyClaim)
      await saveResponse(tx, idempotencyClaim, JSON.stringify(data), principal.permissionsVersion ?? null)
    await appendChanges(tx, app.tables, changes)
    return { data, replayed: false, changes }
  }
  const { data, replayed, changes } = await app.db.transaction(attempt, { groupable, isNecessary })
  if (hasTransactionHooks(app, changes)) await runAfterCommit(context, changes)
  if (changes.some(({ model }) => app.catalog.hasFiles(model))) await app.db.blobs.collect()
  return { data, replayed }
}

/** Adds the errors that hooks have reported to an error that ends the attempt before all records are written. */
function addFieldErrors({ errors, mayHaveMoreErrors }: TransactionAttempt, error: unknown): unknown {
  if (!(error instanceof VersoError)) return error
  const all = errors && errors.count > 0 ? mergeErrors(errors, error) : error
  if (!mayHaveMoreErrors || all.kind !== 'invalid') return all
  return new VersoError(all.kind, all.message, { ...all.details, isPartial: true })
}

function mergeErrors(errors: FieldErrors, error: VersoError): VersoError {
  errors.addAll(error)
  return errors.toError()
}

/** True if transaction hooks are for any of the Changes. */
function hasTransactionHooks({ hooks }: App, changes: readonly NewChange[]): boolean {
  return changes.some(({ model }) => hooks.transactionModels.has(model))
}

/** Returns the stored answer. If the permissions have changed since, it contains only the ids and versions of the records. */
function replayAnswer({ permissions, permissionsVersion }: Principal, stored: StoredResponse): unknown {
  const answer = parseStoredJson(stored.response)
  if (!permissions || stored.permissionsVersion === permissionsVersion) return answer
  return Array.isArray(answer) ? answer.map(toRecordKey) : toRecordKey(answer)
}

/** Builds the value that a repeat under the same key is compared with. */
export async function buildWriteRequest(
  { app }: Context,
  model: Model,
  sent: Omit<WriteRequest, 'model'>,
  { idempotencyKey, returning, merge }: SaveOptions,
): Promise<WriteRequest> {
  // Without a key no repeat is compared with this request.
  if (idempotencyKey === undefined) return { action: sent.action, model: model.name }
  const { data, ...rest } = sent
  const answerOptions = { ...(returning ? { wanted: returning } : {}), ...(merge ? { merge } : {}) }
  const request = { ...rest, model: model.name, ...answerOptions }
  const { data: redacted, secret } = await redactSecrets(app.catalog, [{ model, data }], idempotencyKey)
  return { ...request, data: redacted[0], secret }
}

/**
 * Refuses the write if another node has ended the access of the principal, or has changed the schema: a node with older models would
 * leave out defaults and computed fields of the newer ones.
 */
async function requireCurrentState(
  app: App,
  tx: Transaction,
  principal: Principal,
  changes: readonly NewChange[],
): Promise<void> {
  const models = [...new Set(changes.map(({ model }) => model))]
  if (models.length === 0) return requireAccess(app, tx, principal)
  const { isSchemaCurrent, revocationCount } = await loadWritePreconditions(tx, app.snapshots, models)
  const refusal = refuseEndedAccess(app, tx, principal, revocationCount)
  if (refusal) await refusal
  if (isSchemaCurrent) return
  const message =
    'This node runs outdated models: the schema changed after it started. Restart it with the new models; nothing was changed'
  throw new VersoError('busy', message, { retryAfterS: 5 })
}

function buildIdempotencyClaim(context: Context, request: WriteRequest, key: string): IdempotencyClaim {
  const { principal } = context
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(key) || key.length > MAX_IDEMPOTENCY_KEY_LENGTH) {
    throw new VersoError(
      'bad-request',
      `Idempotency-Key must be 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} printable ASCII characters`,
    )
  }
  const digest = createHash('sha256')
    .update(JSON.stringify(sortKeys({ ...request, via: principal.user?.keyId } as unknown as Json)))
    .digest('base64url')
  return { userId: principal.user?.id ?? 0, key, digest, nowMs: context.app.clock.now() }
}

/** Makes the JSON text independent of the order of keys. */
function sortKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => sortKeys(item))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value as Readonly<Record<string, Json>>)
  return { object: entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sortKeys(item)]) }
}
