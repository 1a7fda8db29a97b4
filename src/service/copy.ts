// A record as the beginning of another one.
import type { Criteria } from '../model/criteria.js'
import type { Field } from '../model/field.js'
import { isOwnedList, isShown, isWritable, type Model } from '../model/model.js'
import { ID, stepOf } from '../model/path.js'
import type { Value, Values } from '../model/value.js'
import { MAX_MEMBERS } from '../model/draft.js'
import * as store from '../store/records.js'
import type { WireRecord } from '../wire.js'
import type { App } from './app.js'
import { checkId, missing } from './ids.js'

const MAX_DEPTH = 4
const MARK = ' (copy)'

/** What can be sent to create a record that holds the same: without ids and versions, its owned records copied with it. */
export async function copy(app: App, model: Model, id: number): Promise<Values> {
  const record = await store.read(app.db.reader, app.tables.of(model), checkId(model, id))
  return copyOf(app, model, record ?? missing(model, id), undefined, 1)
}

async function copyOf(
  app: App,
  model: Model,
  record: WireRecord,
  /** The reference to the owner, which the list decides. */
  owner: string | undefined,
  depth: number,
): Promise<Values> {
  const values: Values = {}
  for (const field of model.fields.values()) {
    if (!isShown(field) || !isWritable(field) || !field.copied || field.name === owner) continue
    const value = (record[field.name] ?? null) as Value
    if (isOwnedList(field) && field.relation?.mappedBy !== undefined)
      values[field.name] = depth < MAX_DEPTH ? await copyMembers(app, model, field, record.id, depth) : []
    else values[field.name] = field.unique ? another(field, value) : value
  }
  return values
}

async function copyMembers(
  app: App,
  model: Model,
  field: Field,
  owner: number,
  depth: number,
): Promise<Value> {
  const { target } = stepOf(app.catalog, model, field)
  const back = field.relation?.mappedBy
  const reference = back === undefined ? undefined : target.fields.get(back)
  if (!reference) return []
  const steps = [stepOf(app.catalog, target, reference)]
  const where: Criteria = { kind: 'comparison', steps, field: ID, operator: '=', values: [owner] }
  const walk = { after: 0, limit: MAX_MEMBERS, where }
  const copies: Values[] = []
  for (const member of await store.walk(app.db.searcher, app.tables.of(target), walk))
    copies.push(await copyOf(app, target, member, back, depth + 1))
  return copies
}

/** What is unique cannot be the same: a text is marked, all else is left to be chosen. */
function another({ type, maxLength }: Field, value: Value): Value {
  if (typeof value !== 'string' || type !== 'string') return null
  return (
    Array.from(value)
      .slice(0, maxLength - MARK.length)
      .join('') + MARK
  )
}
