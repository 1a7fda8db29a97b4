// The same change in all records that match a condition: each with its own version and its own Change.
import { VersoError } from '../../errors.js'
import { andCriteria, type Criteria } from '../../model/query/criteria.js'
import { readUpdateDraft, type Draft } from '../../model/write/draft.js'
import { createFieldError } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD } from '../../model/query/path.js'
import { parseSearchRequest, type Search } from '../../model/query/search.js'
import { isNonNegativeInteger, isObject } from '../../model/values/value.js'
import type { Queryable } from '../../store/engine/database.js'
import { findPage } from '../../store/find/pages.js'
import type { MassUpdate, WriteOptions, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import { sightOf, type Caller } from '../context/principal.js'
import { lockToChange } from '../write/lock-order.js'
import { refuseInMany } from '../auth/auth-rules.js'
import { requirePermitted } from '../access/permission-checks.js'
import { Saving } from '../write/record-writer.js'
import { seenBy } from '../access/visible-records.js'
import { nowOf } from '../context/context.js'
import { requestOf, write } from '../write/transaction.js'

/** They are one transaction, and others wait for its end. */
const MAX_MASS_UPDATE = 1_000

export async function updateMass(
  app: App,
  by: Caller,
  model: Model,
  { data, values, expected }: MassUpdate,
  options: WriteOptions = {},
): Promise<WriteResult<number>> {
  const now = nowOf(app)
  requirePermitted(by, 'read', model)
  requirePermitted(by, 'update', model)
  const search = searchOf(app, by, model, data)
  const draft = draftOf(app, by, model, values, now)
  if (expected !== undefined && expected !== null && !isNonNegativeInteger(expected))
    throw new VersoError('bad-request', 'expected must be the number of records that you believe to match')
  // Looking for them may take long, so it is not done while others wait.
  const { total, keys } = await matching(app, app.db.queryPool, model, search)
  const request = await requestOf(app, model, 'update-mass', { data: { data, values, expected } }, options)
  return write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    // Not before: a repeat is answered as it was, however many match by now.
    refuseIfUnexpected(model, total, expected ?? undefined)
    const saving = new Saving({ app, ...by, tx, now })
    await lockToChange(
      { app, tx },
      keys.map((key) => ({ ...draft, key })),
    )
    // As they are now that nobody else changes them.
    const only: Criteria = {
      ...{ kind: 'comparison', steps: [], field: ID_FIELD, operator: 'in' },
      values: keys.map(({ id }) => id),
    }
    const still = await matching(app, tx, model, { ...search, where: andCriteria(search.where, only) })
    refuseIfUnexpected(model, still.total, expected ?? undefined)
    for (const key of still.keys)
      await saving.update({ ...draft, key }, key, { version: key.version, by: 'version' })
    const changed = await saving.finish()
    changes.push(...changed)
    // Owners may be of the same model: their lists have changed, and they were not asked for.
    const ids = new Set(still.keys.map(({ id }) => id))
    return changed.filter((change) => change.model === model.name && ids.has(change.id)).length
  })
}

/** A condition is needed: who leaves it out has more likely forgotten it than meant everything. */
function searchOf(app: App, by: Caller, model: Model, data: unknown): Search {
  const search = parseSearchRequest(sightOf(app, by), model, { data }, MAX_MASS_UPDATE)
  if (search.where) return { ...search, seen: seenBy(by, model) }
  throw new VersoError(
    'bad-request',
    'A mass update needs a condition in "data": { "criteria": [ … ] } or { "_domain": "…" }',
  )
}

function draftOf(app: App, by: Caller, model: Model, values: unknown, now: string): Draft {
  if (!isObject(values) || Object.keys(values).length === 0)
    throw new VersoError('bad-request', 'A mass update needs the values to set: an object in "records"')
  const key = ['id', 'version'].find((name) => (values[name] ?? null) !== null)
  if (key !== undefined)
    throw new VersoError('bad-request', `A mass update sets no ${key}: "data" says which records it is for`)
  const draft = readUpdateDraft(sightOf(app, by), model, values, { id: 0, version: 0 }, now)
  const [list] = [...draft.lists.keys(), ...draft.related.keys(), ...(draft.inverses?.keys() ?? [])]
  if (list !== undefined)
    throw createFieldError(model, list, 'cannot be set in many records at once: a reference is an id alone')
  const secret = Object.keys(draft.values).find((name) => model.fields.get(name)?.secret)
  if (secret !== undefined) throw createFieldError(model, secret, 'is secret, which no two records share')
  refuseInMany(draft)
  return draft
}

interface Matching {
  readonly total: number
  readonly keys: readonly { readonly id: number; readonly version: number }[]
}

async function matching(app: App, db: Queryable, model: Model, search: Search): Promise<Matching> {
  const selection = { model, versionKeys: ['version'], entries: [] } as const
  const page = { ...search, offset: 0, limit: MAX_MASS_UPDATE, sort: [], selection }
  const { total, records } = await findPage(db, app.tables.of(model), page)
  return { total, keys: records.map(({ id, version }) => ({ id, version })) }
}

function refuseIfUnexpected(model: Model, total: number, expected: number | undefined): void {
  if (total > MAX_MASS_UPDATE)
    throw new VersoError(
      'bad-request',
      `${total} records match, and at most ${MAX_MASS_UPDATE} are changed at once: nothing was written`,
    )
  if (expected === undefined || expected === total) return
  throw new VersoError('conflict', `${total} records match, not ${expected}: nothing was written`, {
    data: { entityName: model.name, expected, current: total },
  })
}
