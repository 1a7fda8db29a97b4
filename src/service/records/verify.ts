// Checks whether records are still at the versions that a client has read.
import { VersoError } from '../../errors.js'
import type { VersionedId } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import type { Visibility } from '../../model/query/visibility.js'
import { isId, isObject, isVersion } from '../../model/values/value.js'
import * as store from '../../store/records/records.js'
import { refuseIfStale } from '../write/conflict.js'
import { throwNotFound } from '../access/request-checks.js'
import { evaluateOptionalCriteria } from '../access/record-access.js'
import { getVisibleCriteria } from '../access/visible-records.js'
import { getVisibility, type Context } from '../context/context.js'

const MAX_VERIFIED_RECORDS = 1_000

interface VersionClaim {
  readonly model: Model
  readonly id: number
  readonly version: number
}

/** Refuses if the record, or a related record inside of it, is deleted or at another version than the client names. */
export async function verifyVersions(context: Context, model: Model, data: unknown): Promise<void> {
  const { app, principal } = context
  if (!isObject(data)) throw new VersoError('bad-request', '"data" must be a record with its id and version')
  const claims: VersionClaim[] = []
  collectClaims({ visibility: getVisibility(app, principal), claims, visitedRecords: 0 }, model, data)
  if (claims.length === 0)
    throw new VersoError('bad-request', '"data" must have the id and the version of at least one record')
  for (const { model: claimed, id, version } of claims) {
    const [isVisible] = await evaluateOptionalCriteria(app.db.queryPool, app.tables.of(claimed), id, [
      getVisibleCriteria(principal, claimed),
    ])
    if (!isVisible) throwNotFound(claimed, id)
    await requireVersion(context, claimed, { id, version })
  }
}

/** Refuses unless the record exists at the version. Does not check whether the record is visible. */
export async function requireVersion(
  context: Context,
  model: Model,
  { id, version }: VersionedId,
): Promise<void> {
  const table = context.app.tables.of(model)
  await refuseIfStale(context, table, id, { expected: { version, source: 'version' }, draft: null })
  if ((await store.findVersion(context.db, table, id)) === undefined) throwNotFound(model, id)
}

interface ClaimCollection {
  readonly visibility: Visibility
  readonly claims: VersionClaim[]
  visitedRecords: number
}

function collectClaims(
  collection: ClaimCollection,
  model: Model,
  data: Readonly<Record<string, unknown>>,
): void {
  const { visibility, claims } = collection
  // Records without a version count, too, because each of them is walked.
  if (++collection.visitedRecords > MAX_VERIFIED_RECORDS)
    throw new VersoError(
      'bad-request',
      `At most ${MAX_VERIFIED_RECORDS} records can be verified in one request`,
    )
  const { id = null } = data
  const version = data['version'] ?? data['$version'] ?? null
  // A missing version claims nothing. A misspelled key is refused, because it must not count as verified.
  if (id !== null && version !== null) {
    if (!isId(id) || !isVersion(version))
      throw new VersoError(
        'bad-request',
        `A ${model.name} has an invalid id or version: ids are whole numbers from 1, versions from 0`,
      )
    claims.push({ model, id, version })
  }
  for (const { name, relation } of model.fields.values()) {
    if (!relation || !Object.hasOwn(data, name) || !visibility.findReadable(model, name)) continue
    const target = visibility.getTarget(relation)
    if (target.isReferenceOnly) continue
    for (const related of [data[name]].flat())
      if (isObject(related)) collectClaims(collection, target, related)
  }
}
