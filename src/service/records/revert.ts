// Back to what a record held: an ordinary update under its version, or the return of one that was deleted.
import { VersoError } from '../../errors.js'
import { readCreateDraft, readUpdateDraft, type Draft } from '../../model/write/draft.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import type { Field } from '../../model/values/field-types.js'
import { isOwnedList, isReadByDefault, isWritable, type Model } from '../../model/definition/model.js'
import { getReferenceId, listIds, isSameValue, type Value, type Values } from '../../model/values/value.js'
import { readVersions } from '../../store/records/bulk.js'
import { UniqueViolation, type Queryable, type Transaction } from '../../store/engine/database.js'
import { findLastVersion } from '../../store/log/history.js'
import * as store from '../../store/records/records.js'
import { isKnownIn, wasAfter, valueIn, type RecordState, type Was } from '../../store/log/past.js'
import type { UpdateOptions, WireRecord, WriteResult } from '../../wire.js'
import { refuseNewKey } from '../auth/key-rules.js'
import type { App } from '../context/app.js'
import { refuseIfStale } from '../write/conflict.js'
import { checkId, missing } from '../context/ids.js'
import { lockInOrder } from '../write/lock-order.js'
import { pastAt, shownPast, type Past } from '../log/past-record.js'
import { withoutUnseen } from '../log/past-visibility.js'
import { sightOf, type Caller } from '../context/principal.js'
import { requirePermitted } from '../access/permission-checks.js'
import { ready, requireUpdatable, shownTo } from './save.js'
import { Saving, type Return } from '../write/record-writer.js'
import { versionToRevert, versionToUpdate, type Expected } from '../write/versions.js'
import { nowOf } from '../context/context.js'
import { requestOf, write } from '../write/transaction.js'

interface Asked {
  readonly id: number
  readonly expected: Expected
  /** The version that is to be had again. */
  readonly to: number
  readonly now: string
}

/** What is to be written; `back` where the record is gone. */
interface Reversion {
  readonly draft: Draft
  /** The version that it is made for. */
  readonly from: number
  readonly back?: Return
}

export async function revert(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  data: unknown,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  checkId(model, id)
  const expected = versionToUpdate(data, id, options)
  const asked: Asked = { id, expected, to: versionToRevert(data, expected), now: nowOf(app) }
  // What is wrong with it is said below: a repeat is answered as it was, whatever has become of the record since.
  const prepared = await settle(reversionOf(app, by, model, asked))
  const shown = shownTo(app, by, model, options)
  const request = await requestOf(app, model, 'revert', { id, version: expected.version, data }, options)
  const written = write(app, by, request, options.idempotencyKey, async ({ tx, changes }) => {
    const { draft, from, back } = prepared()
    const saving = new Saving({ app, ...by, tx, now: asked.now }, [draft])
    await lockInOrder({ app, tx }, [draft])
    if (back) {
      await refuseIfBack(app, by, tx, model, asked, draft)
      await saving.create(draft, undefined, back)
    } else {
      await saving.update(draft, { id, version: expected.version }, expected)
      // It has only just come to the version that was named: what is written is the way back from another one.
      if (from !== expected.version) throw movedOn(model, asked, from)
    }
    changes.push(...(await saving.finish()))
    return shown(saving, tx, id)
  })
  return written.catch(async (error: unknown) => {
    if (!isTaken(error)) throw error
    throw movedOn(model, asked, await findLastVersion(app.db.reader, model.name, id), error)
  })
}

async function settle<T>(work: Promise<T>): Promise<() => T> {
  try {
    const done = await work
    return () => done
  } catch (error) {
    if (!(error instanceof VersoError)) throw error
    return () => {
      throw error
    }
  }
}

async function reversionOf(app: App, by: Caller, model: Model, asked: Asked): Promise<Reversion> {
  const { id, to } = asked
  const db = app.db.queryPool
  const now = await wasAfter(db, app.tables.of(model), id, () => true)
  // A version that is yet to come is before one that is yet to come, too: it is a conflict.
  const isAhead = now.latest !== undefined && to > now.latest
  const past = isAhead ? undefined : await pastAt(app, by, db, model, id, to)
  if (now.today === 'gone') return returnOf(app, by, db, model, asked, past, now)
  await requireUpdatable(app, by, model, id)
  const sent = past ? await seenOf(app, by, db, model, takenBack(app, by, model, past, now.today)) : {}
  // A conflict is told before anything else.
  if (now.latest === asked.expected.version) await refuseGone(app, db, model, sent, {})
  const key = { id, version: asked.expected.version }
  const draft = await ready(app, by, readUpdateDraft(sightOf(app, by), model, sent, key, asked.now))
  return { draft, from: now.latest ?? 0 }
}

function takenBack(app: App, by: Caller, model: Model, past: Past, today: RecordState): Values {
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = past.values[field.name] ?? null
    if (isTakenBack(app, by, model, field, past) && !isSameValue(value, valueIn(today, field.name)))
      data[field.name] = value
  }
  return data
}

/** Files and secrets stay as they are; so does what the caller may not see or write, and what nobody knows. */
function isTakenBack(app: App, by: Caller, model: Model, field: Field, { shown, values }: Past): boolean {
  if (!isReadByDefault(field) || !isWritable(field) || !isKnownIn(values, field.name)) return false
  return (!shown || shown.has(field.name)) && sightOf(app, by).canWrite(model, field)
}

/** Without what leads to records that the caller does not see. */
async function seenOf(app: App, by: Caller, db: Queryable, model: Model, data: Values): Promise<Values> {
  const [seen = data] = await withoutUnseen(app, by, db, model, [data])
  return Object.fromEntries(
    Object.entries(seen).filter(([name, value]) => value !== null || data[name] === null),
  )
}

/** Names every neighbour that is no longer there. */
async function refuseGone(
  app: App,
  db: Queryable,
  model: Model,
  data: Values,
  { self }: { readonly self?: number },
): Promise<void> {
  const faults = new FieldErrors()
  for (const [name, value] of Object.entries(data)) {
    const { relation } = model.fields.get(name) ?? {}
    if (!relation || value === null) continue
    const target = app.catalog.getTarget(relation)
    const isList = Array.isArray(value)
    const ids = (isList ? (value as readonly Value[]) : [value]).map(getReferenceId)
    const there = await readVersions(db, app.tables.of(target), ids)
    ids.forEach((id, index) => {
      if (there.has(id) || (target === model && id === self)) return
      const place = isList ? `${name}[${index}]` : name
      faults.add(place, `there is no ${target.name} ${id} any more: revert that record first`)
    })
  }
  faults.refuseIfAny(model)
}

/** Of a record that was deleted. It needs the right to make it, with all that it held: it returns whole, or not at all. */
async function returnOf(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  asked: Asked,
  past: Past | undefined,
  { latest = 0 }: Was,
): Promise<Reversion> {
  const { id, expected, now } = asked
  const last = await wasAfter(db, app.tables.of(model), id, ({ version }) => version < latest)
  if (!(await shownPast(app, by, db, model, id, last))) missing(model, id)
  requirePermitted(by, 'create', model)
  refuseNewKey(model)
  if (past) requireWhole(app, by, model, past)
  if (!past || latest !== expected.version) throw movedOn(model, asked, latest)
  const data: Values = {}
  for (const field of model.fields.values()) {
    const value = past.values[field.name] ?? null
    if (!isReadByDefault(field) || !isWritable(field) || isMembers(field)) continue
    if (!isKnownIn(past.values, field.name)) continue
    data[field.name] = wentAlong(model, field, value, past.values) ? null : value
  }
  await requireSeen(app, by, db, model, data, id)
  await refuseGone(app, db, model, data, { self: id })
  const draft = await ready(app, by, readCreateDraft(sightOf(app, by), model, data, now))
  const { createdOn = null, createdBy = null } = past.values
  const sequences = [...model.fields.values()].filter(({ sequence }) => sequence)
  const numbers = Object.fromEntries(sequences.map(({ name }) => [name, past.values[name] ?? null]))
  return { draft, from: latest, back: { id, version: latest + 1, made: { createdOn, createdBy }, numbers } }
}

function requireWhole(app: App, by: Caller, model: Model, { shown }: Past): void {
  if (!by.rights) return
  const fields = [...model.fields.values()].filter((field) => isReadByDefault(field) && isWritable(field))
  const isWhole = fields.every(
    (field) => (!shown || shown.has(field.name)) && sightOf(app, by).canWrite(model, field),
  )
  if (!isWhole) throw notWhole(model)
}

/** To those who do not see everything, a neighbour that is gone is like one that is hidden: neither is named, and both are refused alike. */
async function requireSeen(
  app: App,
  by: Caller,
  db: Queryable,
  model: Model,
  data: Values,
  self: number,
): Promise<void> {
  const [seen = data] = await withoutUnseen(app, by, db, model, [data])
  const isWhole = [...model.fields.values()].every(({ name, relation }) => {
    const ids = new Set(listIds([seen[name] ?? []].flat()))
    if (relation?.target === model.name) ids.add(self)
    return !relation || listIds([data[name] ?? []].flat()).every((id) => ids.has(id))
  })
  if (!isWhole) throw notWhole(model)
}

function notWhole(model: Model): VersoError {
  return new VersoError(
    'forbidden',
    `You may not bring back a ${model.name}: you do not see and write all of it`,
  )
}

/** The members of an owned list went with their owner, and come back by their own revert. */
function isMembers(field: Field): boolean {
  return isOwnedList(field) && field.relation?.mappedBy !== undefined
}

/** A reference to one of its own members: neither could be the first to return. */
function wentAlong(model: Model, { relation }: Field, value: Value, values: Values): boolean {
  if (!relation || relation.isList || value === null) return false
  const lists = [...model.fields.values()].filter(
    (field) => isMembers(field) && field.relation?.target === relation.target,
  )
  return lists.some(({ name }) => {
    const members = values[name] ?? []
    return (
      Array.isArray(members) &&
      members.some((member: Value) => getReferenceId(member) === getReferenceId(value))
    )
  })
}

/** Somebody may have brought it back meanwhile, and deleted it again. */
async function refuseIfBack(
  app: App,
  by: Caller,
  tx: Transaction,
  model: Model,
  asked: Asked,
  draft: Draft,
): Promise<void> {
  const { id, expected } = asked
  const table = app.tables.of(model)
  const isBack = async () => (await store.findVersion(tx, table, id)) !== undefined
  if (await isBack()) {
    await refuseIfStale({ app, ...by }, tx, table, id, expected, draft)
    // It is there, and may not be seen as it is now.
    if (await isBack()) missing(model, id)
  }
  const last = await findLastVersion(tx, model.name, id)
  if (last !== expected.version) throw movedOn(model, asked, last)
}

function movedOn(
  model: Model,
  { id, expected }: Asked,
  current: number | undefined,
  cause?: unknown,
): VersoError {
  const message = `${model.name} ${id} is at version ${current ?? 'none'}, not ${expected.version}: nothing was written`
  return new VersoError(expected.by === 'if-match' ? 'stale-match' : 'conflict', message, {
    data: { entityName: model.name, entityId: id, expected: expected.version, current },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The id, or the version in the Log, was taken by another return of the same record. */
function isTaken(error: unknown): boolean {
  if (error instanceof UniqueViolation) return true
  if (!(error instanceof VersoError) || error.kind !== 'not-unique') return false
  const { fields } = error.details.data ?? {}
  return Array.isArray(fields) && fields.every((name) => name === 'id')
}
