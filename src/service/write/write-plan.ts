// The plan of a write: which stages a draft needs, and whether it may join a group commit.
import type { Draft } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import type { Value } from '../../model/values/value.js'
import type { SaveOptions } from '../../wire.js'
import type { Context, WritePlan } from '../context/app.js'
import type { Principal } from '../context/principal.js'

/** The values of all members of a group are in memory at once, and are sent in one statement. */
const MAX_GROUPABLE_CHARACTERS = 20_000

export function planWrite(
  context: Context,
  draft: Draft,
  options: SaveOptions,
  hasAddition = false,
): WritePlan {
  const { model, key } = draft
  const values = inspectValues(draft)
  const hooks = context.app.hooks.models.has(model.name)
  const lists = draft.lists.size > 0
  const related = draft.related.size > 0
  const locks = lists || related || options.merge !== undefined
  const sentBack = draft.copies.size > 0 || draft.inverses !== undefined
  const patches = draft.patched !== undefined
  // A hook that runs before the save may set any value, also a reference.
  const references = values.hasReference || related || hooks
  const files = values.hasFile || hooks
  const permissions = needsPermissionChecks(context.principal, model, key ? 'update' : 'create')
  const sequences = !key && model.sequenceFields.length > 0
  // A hook may write records that this one shows.
  const readsBack = lists || related || model.showsItself || hooks
  return {
    locks,
    sentBack,
    patches,
    related,
    references,
    lists,
    files,
    permissions,
    sequences,
    hooks,
    readsBack,
    isPlain: !(locks || sentBack || patches || references || files || permissions || sequences || readsBack),
    // An addition may write other rows and the content of files, so it needs a transaction of its own.
    groupable:
      !hasAddition && mayJoinGroup(context, draft, options, values)
        ? { record: key && `${model.name} ${key.id}` }
        : undefined,
  }
}

/** One grant without limits permits every write. The answer is then the whole record, too. */
function needsPermissionChecks(
  { permissions }: Principal,
  model: Model,
  action: 'create' | 'update',
): boolean {
  return (
    permissions !== undefined && !(permissions.of(model).isUnlimited(action) && permissions.seesWhole(model))
  )
}

/** The values of a draft that decide its plan. A null in a new record counts as no value. */
interface ValueFacts {
  readonly hasReference: boolean
  readonly hasFile: boolean
  /** A secret may be looked up by its value. */
  readonly hasSecret: boolean
  readonly hasUnique: boolean
  readonly characters: number
}

function inspectValues({ model, key, values }: Draft): ValueFacts {
  let hasReference = false
  let hasFile = false
  let hasSecret = false
  let hasUnique = false
  let characters = 0
  for (const name of Object.keys(values)) {
    const value = values[name] ?? null
    const field = model.fields.get(name)
    if (!field || (value === null && !key)) continue
    hasReference ||= field.relation !== undefined
    hasFile ||= field.type === 'binary'
    hasSecret ||= field.secret !== undefined
    hasUnique ||= model.uniqueFields.has(name)
    characters += measureText(value)
  }
  return { hasReference, hasFile, hasSecret, hasUnique, characters }
}

/**
 * In a group, locks do not separate the members, and their writes are visible before they are committed. So only a write may join that depends
 * on nothing but the version of one record, which its guarded statement checks, and on unique indexes.
 */
function mayJoinGroup(
  { app, principal }: Context,
  { model, key, related, lists, inverses }: Draft,
  { idempotencyKey, merge }: SaveOptions,
  values: ValueFacts,
): boolean {
  return (
    // A repeat of the key waits for the transaction that has claimed it.
    idempotencyKey === undefined &&
    // A record that is merged stays locked while it is compared.
    merge === undefined &&
    !values.hasFile &&
    !values.hasSecret &&
    // Related records and members are locked in an order, and their owners get new versions.
    related.size === 0 &&
    lists.size === 0 &&
    // Inverse relations are read from other records.
    inverses === undefined &&
    // A condition would see what others have not committed.
    principal.permissions?.of(model).hasConditions !== true &&
    // A hook that reads or writes other records would, too.
    !app.hooks.hookedModels.has(model.name) &&
    (key ? mayUpdateInGroup(model, values) : mayCreateInGroup(model, values)) &&
    values.characters <= MAX_GROUPABLE_CHARACTERS
  )
}

/** An update that violates a unique index fails, and with it the whole group. A changed reference requires an exclusive transaction later. */
function mayUpdateInGroup(model: Model, { hasUnique }: ValueFacts): boolean {
  return !hasUnique && !model.hasComputedUniqueField
}

/** All writers wait for the row of a sequence. A referenced record is locked against its removal. */
function mayCreateInGroup(model: Model, { hasReference }: ValueFacts): boolean {
  return model.sequenceFields.length === 0 && !hasReference
}

function measureText(value: Value): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? JSON.stringify(value).length : 0
}
