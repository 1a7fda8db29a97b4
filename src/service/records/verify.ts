// Whether what somebody looks at is still as it was read.
import { VersoError } from '../../errors.js'
import type { VersionedId } from '../../model/write/draft.js'
import { USER_MODEL, type Model } from '../../model/definition/model.js'
import type { Visibility } from '../../model/query/visibility.js'
import { isId, isObject, isVersion } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import * as store from '../../store/records/records.js'
import type { App } from '../context/app.js'
import { sightOf, type Caller } from '../context/principal.js'
import { refuseIfStale } from '../write/conflict.js'
import { missing } from '../context/ids.js'
import { holding } from '../access/record-access.js'
import { seenBy } from '../access/visible-records.js'

const MAX_VERIFIED = 1_000

interface Claimed {
  readonly model: Model
  readonly id: number
  readonly version: number
}

/** Refuses if the record, or a neighbour inside of it, is no longer at the version that is named, or no longer there. */
export async function verify(app: App, by: Caller, model: Model, data: unknown): Promise<void> {
  if (!isObject(data)) throw new VersoError('bad-request', '"data" must be a record with its id and version')
  const claims: Claimed[] = []
  collect(sightOf(app, by), model, data, claims, { records: 0 })
  if (claims.length === 0)
    throw new VersoError('bad-request', '"data" must name the id and the version of at least one record')
  for (const { model: claimed, id, version } of claims) {
    const [isSeen] = await holding(app.db.queryPool, app.tables.of(claimed), id, [seenBy(by, claimed)])
    if (!isSeen) missing(claimed, id)
    await requireVersion({ app, ...by }, app.db.reader, claimed, { id, version })
  }
}

/** Refuses unless the record is there and at the version. Whether it may be seen is for the caller to say. */
export async function requireVersion(
  refused: Caller & { readonly app: App },
  db: Queryable,
  model: Model,
  { id, version }: VersionedId,
): Promise<void> {
  const table = refused.app.tables.of(model)
  await refuseIfStale(refused, db, table, id, { version, by: 'version' }, null)
  if ((await store.findVersion(db, table, id)) === undefined) missing(model, id)
}

function collect(
  sight: Visibility,
  model: Model,
  data: Readonly<Record<string, unknown>>,
  claims: Claimed[],
  seen: { records: number },
): void {
  // Also those that claim nothing: each is looked through.
  if (++seen.records > MAX_VERIFIED)
    throw new VersoError('bad-request', `At most ${MAX_VERIFIED} records can be verified at once`)
  const { id = null } = data
  const version = data['version'] ?? data['$version'] ?? null
  // What is left out is not claimed; what is misspelled must not pass for verified.
  if (id !== null && version !== null) {
    if (!isId(id) || !isVersion(version))
      throw new VersoError(
        'bad-request',
        `A ${model.name} has an id that is no whole number from 1, or a version that is none from 0`,
      )
    claims.push({ model, id, version })
  }
  for (const { name, relation } of model.fields.values()) {
    if (!relation || !Object.hasOwn(data, name) || !sight.findReadable(model, name)) continue
    const target = sight.getTarget(relation)
    // Who made a record, and who keeps it, is no part of what was read of it.
    if (target.name === USER_MODEL) continue
    for (const neighbour of [data[name]].flat())
      if (isObject(neighbour)) collect(sight, target, neighbour, claims, seen)
  }
}
