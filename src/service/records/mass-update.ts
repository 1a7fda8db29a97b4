// Sets the same values in all records that match a condition. Each record gets its own version and its own Change.
import { VersoError } from '../../errors.js'
import { andCriteria, type Criteria } from '../../model/query/criteria.js'
import { readUpdateDraft } from '../../model/write/draft-reader.js'
import type { Draft } from '../../model/write/draft.js'
import { createFieldError } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD } from '../../model/query/path.js'
import { parseSearchRequest, type Search } from '../../model/query/search.js'
import { isNonNegativeInteger, isObject } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import { findPage } from '../../store/find/pages.js'
import type { MassUpdate, WriteOptions, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import { lockForUpdate } from '../write/lock-order.js'
import { requirePermission } from '../access/request-checks.js'
import { RecordWriter } from '../write/record-writer.js'
import { getVisibleCriteria } from '../access/visible-records.js'
import { getVisibility, type Context } from '../context/context.js'
import { buildWriteRequest, writeInTransaction } from '../write/transaction.js'

/** One transaction writes all of them, and other writers wait for it. */
const MAX_MASS_UPDATE_RECORDS = 1_000

export async function updateMass(
  context: Context,
  model: Model,
  { data, values, expected }: MassUpdate,
  options: WriteOptions = {},
): Promise<WriteResult<number>> {
  const { app, principal } = context
  requirePermission(principal, 'read', model)
  requirePermission(principal, 'update', model)
  const search = buildMassUpdateSearch(context, model, data)
  const draft = buildMassUpdateDraft(context, model, values)
  if (expected !== undefined && expected !== null && !isNonNegativeInteger(expected))
    throw new VersoError('bad-request', 'expected must be the number of records that should match')
  // The search may take long, so it runs before the transaction.
  const { total, keys } = await findMatching(app, app.db.queryPool, model, search)
  const sent = { action: 'update-mass', data: { data, values, expected } } as const
  const request = await buildWriteRequest(context, model, sent, options)
  return writeInTransaction(context, request, options, async ({ context: writing, changes }) => {
    // A repeat under the same idempotency key never gets here, so it is not refused if the number of matches has changed.
    refuseUnexpectedTotal(model, total, expected ?? undefined)
    const writer = new RecordWriter(writing)
    await lockForUpdate(
      writing,
      keys.map((key) => ({ ...draft, key })),
    )
    // Searches again now that the records are locked.
    const idCriteria: Criteria = {
      kind: 'comparison',
      steps: [],
      field: ID_FIELD,
      operator: 'in',
      values: keys.map(({ id }) => id),
    }
    const still = await findMatching(app, writing.tx, model, {
      ...search,
      where: andCriteria(search.where, idCriteria),
    })
    refuseUnexpectedTotal(model, still.total, expected ?? undefined)
    await writer.updateAll(still.keys.map((key) => ({ ...draft, key })))
    const changed = await writer.state.finish()
    changes.push(...changed)
    // Owners of the same model changed too, but they were not part of the request.
    const ids = new Set(still.keys.map(({ id }) => id))
    return changed.filter((change) => change.model === model.name && ids.has(change.id)).length
  })
}

/** Requires a condition, because a missing one is more likely a mistake than a request to change everything. */
function buildMassUpdateSearch(context: Context, model: Model, data: unknown): Search {
  const { principal } = context
  const search = parseSearchRequest(
    getVisibility(context.app, principal),
    model,
    { data },
    MAX_MASS_UPDATE_RECORDS,
  )
  if (search.where) return { ...search, visible: getVisibleCriteria(principal, model) }
  throw new VersoError(
    'bad-request',
    'A mass update needs a condition in "data": { "criteria": [ … ] } or { "_domain": "…" }',
  )
}

function buildMassUpdateDraft(context: Context, model: Model, values: unknown): Draft {
  if (!isObject(values) || Object.keys(values).length === 0)
    throw new VersoError('bad-request', 'A mass update needs the values to set: an object in "records"')
  const key = ['id', 'version'].find((name) => (values[name] ?? null) !== null)
  if (key !== undefined)
    throw new VersoError('bad-request', `A mass update cannot set ${key}: select the records with "data"`)
  const draft = readUpdateDraft(
    getVisibility(context.app, context.principal),
    model,
    { data: values, key: { id: 0, version: 0 } },
    context.now,
  )
  const [list] = [...draft.lists.keys(), ...draft.related.keys(), ...(draft.inverses?.keys() ?? [])]
  if (list !== undefined)
    throw createFieldError(model, list, 'cannot be set in a mass update: send a reference as an id only')
  const secret = Object.keys(draft.values).find((name) => model.fields.get(name)?.secret)
  if (secret !== undefined)
    throw createFieldError(model, secret, 'cannot be set in a mass update: it is secret')
  refusePreparedFields(context, draft)
  return draft
}

/** A mass update does not call the `prepare` hook, which may read the rest of each record. */
function refusePreparedFields({ app }: Context, { model, values }: Draft): void {
  const fields = app.hooks.models.get(model.name)?.preparedFields
  const name = fields?.find((each) => Object.hasOwn(values, each))
  if (name !== undefined)
    throw createFieldError(
      model,
      name,
      'cannot be set in a mass update: it is validated with the rest of its record. Update one record at a time',
    )
}

interface MatchingRecords {
  readonly total: number
  readonly keys: readonly { readonly id: number; readonly version: number }[]
}

async function findMatching(app: App, db: Queryable, model: Model, search: Search): Promise<MatchingRecords> {
  const selection = { model, versionKeys: ['version'], entries: [] } as const
  const page = { ...search, offset: 0, limit: MAX_MASS_UPDATE_RECORDS, sort: [], selection }
  const { total = 0, records } = await findPage(db, app.tables.of(model), page)
  return { total, keys: records.map(({ id, version }) => ({ id, version })) }
}

function refuseUnexpectedTotal(model: Model, total: number, expected: number | undefined): void {
  if (total > MAX_MASS_UPDATE_RECORDS)
    throw new VersoError(
      'bad-request',
      `${total} records match, but a mass update changes at most ${MAX_MASS_UPDATE_RECORDS}; nothing was changed`,
    )
  if (expected === undefined || expected === total) return
  throw new VersoError('conflict', `${total} records match, not ${expected}; nothing was changed`, {
    data: { entityName: model.name, expected, current: total },
  })
}
