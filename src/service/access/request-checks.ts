// Checks a request before records are read or written: its model, id, version and data, and whether the principal may perform the action on
// some record of the model. Conditions on single records are checked where the records are read or written.
import { VersoError } from '../../errors.js'
import { isId, isObject, isVersion } from '../../model/values/value.js'
import { createUnknownModelError } from '../../model/catalog/catalog.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import * as store from '../../store/records/records.js'
import { readCreateDraft, readUpdateDraft } from '../../model/write/draft-reader.js'
import type { Draft, VersionedId } from '../../model/write/draft.js'
import { markPatchedFields } from '../../model/write/merge-patch.js'
import type { App } from '../context/app.js'
import { getVisibility, type Context } from '../context/context.js'
import { isRecordVisible } from './visible-records.js'
import type { Principal } from '../context/principal.js'
import type { UpdateOptions } from '../../wire.js'

/** Finds a model by name. A model without any permission is reported like an unknown one. */
export function requireKnownModel(
  app: Pick<App, 'catalog'>,
  { permissions }: Principal,
  name: string,
): Model {
  const model = app.catalog.get(name)
  if (permissions && !permissions.of(model).isVisible) throw createUnknownModelError(name)
  return model
}

export function requirePermission({ permissions }: Principal, action: PermissionAction, model: Model): void {
  if (!permissions || permissions.of(model).can(action)) return
  throw new VersoError('forbidden', `You do not have permission to ${action} records of ${model.name}`)
}

/** Throws `not-found` for a number that cannot be an id: ids are integers from 1. */
export function requireId(model: Model, id: number): number {
  return isId(id) ? id : throwNotFound(model, id)
}

export function throwNotFound(model: Model, id: number): never {
  throw createNotFoundError(model, id)
}

export function createNotFoundError({ name }: Model, id: number): VersoError {
  return new VersoError('not-found', `${name} ${id} does not exist`)
}

/** Throws `forbidden` if only the service may write the model. */
export function requireWritableModel(model: Model): Model {
  if (!model.isReadOnly) return model
  throw new VersoError(
    'forbidden',
    `${model.name} is read-only: only the service writes it; nothing was changed`,
  )
}

/** Refuses a model whose records no create request can create, before it reports errors of their fields. */
export function requireDirectCreate({ createInstruction }: Model): void {
  if (createInstruction !== undefined) throw new VersoError('forbidden', createInstruction)
}

/** Lists the models that the principal has any permission for. */
export function listPermittedModels(
  { catalog }: Pick<App, 'catalog'>,
  { permissions }: Principal,
): readonly Model[] {
  return catalog.storedModels.filter((model) => !permissions || permissions.of(model).isVisible)
}

/** Lists the actions that the principal may perform on some record of the model. */
export function listActions({ permissions }: Principal, model: Model): readonly PermissionAction[] {
  const isPossible = (action: PermissionAction) =>
    action === 'read' || action === 'export' || !model.isReadOnly
  return PERMISSION_ACTIONS.filter(
    (action) => isPossible(action) && (!permissions || permissions.of(model).can(action)),
  )
}

/** Lists the permitted actions on the model, or on one record as it is now. */
export async function listPermittedActions(
  app: App,
  principal: Principal,
  model: Model,
  id?: number,
): Promise<PermissionAction[]> {
  const permitted = [...listActions(principal, model)]
  if (id === undefined) return permitted
  const permissions = principal.permissions?.of(model)
  const table = app.tables.of(model)
  const rows = permitted.map((action) => permissions?.criteriaFor(action))
  const conditions = [permissions?.criteriaFor('read'), ...rows].map((row) => row ?? ALWAYS_TRUE)
  const [isVisible, ...holds] = (await store.evaluateCriteria(app.db.queryPool, table, id, conditions)) ?? [
    false,
  ]
  return isVisible === true ? permitted.filter((_, index) => holds[index]) : throwNotFound(model, id)
}

const ALWAYS_TRUE: Criteria = { kind: 'and', criteria: [] }

/** Refuses anyone but an administrator. */
export function requireAdmin({ permissions }: Principal): void {
  if (permissions) throw new VersoError('forbidden', 'Only administrators have permission to do this')
}

/** The version that a write was made from. Its source decides the status of the error. */
export interface ExpectedVersion {
  readonly version: number
  readonly source: 'version' | 'if-match'
}

/** An update must name its version, in the body or by `If-Match`. */
export function parseUpdateVersion(
  data: unknown,
  id: number,
  { ifMatch, patch = false }: UpdateOptions,
): ExpectedVersion {
  if (!isObject(data))
    throw new VersoError('bad-request', '"data" must be an object with the version and the fields to change')
  if (data['id'] !== undefined && data['id'] !== null && data['id'] !== id) {
    throw new VersoError(
      'bad-request',
      `${patch ? 'id' : 'data.id'} does not match the id in the path, ${id}`,
    )
  }
  const expected = resolveExpectedVersion(data['version'] ?? undefined, ifMatch)
  if (expected) return expected
  throw new VersoError(
    'bad-request',
    patch
      ? 'Missing version: send the version that this PATCH is based on, as If-Match: "3" or as "version" among the fields; nothing was changed'
      : 'Missing version: send the version that this update is based on, as data.version (?version= without a body) or If-Match; nothing was changed',
  )
}

/** Parses the version of one record in a list; undefined if there is none. */
export function parseVersion(record: Readonly<Record<string, unknown>>, path: string): number | undefined {
  const version = record['version'] ?? undefined
  if (version === undefined || isVersion(version)) return version
  throw new VersoError('bad-request', `${path}.version must be a whole number from 0`)
}

/** A delete may name its version. */
export function parseRemoveVersion({
  version,
  ifMatch,
}: {
  version?: unknown
  ifMatch?: number | undefined
}): ExpectedVersion | undefined {
  return resolveExpectedVersion(version, ifMatch)
}

function resolveExpectedVersion(version: unknown, ifMatch: number | undefined): ExpectedVersion | undefined {
  if (version !== undefined && !isVersion(version)) {
    throw new VersoError('bad-request', 'The version must be a whole number from 0')
  }
  if (ifMatch !== undefined && !isVersion(ifMatch)) {
    throw new VersoError('bad-request', 'If-Match must be a version such as "3"')
  }
  if (version !== undefined && ifMatch !== undefined && version !== ifMatch) {
    throw new VersoError(
      'bad-request',
      `If-Match has version ${ifMatch}, but the request has version ${version}: send one of them`,
    )
  }
  if (ifMatch !== undefined) return { version: ifMatch, source: 'if-match' }
  return version === undefined ? undefined : { version, source: 'version' }
}

/** A principal without the permission to update gets `forbidden` for a visible record, and `not-found` for others. */
export async function requireUpdatable(context: Context, model: Model, id: number): Promise<void> {
  const { principal } = context
  if (mayUpdate(principal, model)) return
  if (!(await isRecordVisible(context, { model, id }))) throwNotFound(model, id)
  requirePermission(principal, 'update', model)
}

/** True if the principal may update some records of the model. */
export function mayUpdate({ permissions }: Principal, model: Model): boolean {
  return !permissions || permissions.of(model).can('update')
}

/** Returns the id and the version of the record to update; undefined for a create. */
export function parseRecordKey(model: Model, data: unknown, path: string): VersionedId | undefined {
  if (!isObject(data) || (data['id'] ?? null) === null) {
    refuseRecordKeys(data, `${path}: `)
    return undefined
  }
  const { id } = data
  if (typeof id !== 'number') throw new VersoError('bad-request', `${path}.id must be a whole number from 1`)
  const version = parseVersion(data, path)
  if (version !== undefined) return { id: requireId(model, id), version }
  throw new VersoError(
    'bad-request',
    `${path} has an id but no version: send the version that the update is based on`,
  )
}

export function refuseRecordKeys(data: unknown, path = ''): void {
  if (!isObject(data)) return
  const keys = ['id', 'version'].filter((key) => data[key] !== undefined && data[key] !== null)
  if (keys.length > 0) {
    throw new VersoError(
      'bad-request',
      `${path}A new record has no ${keys.join(' and no ')} yet: omit it, or update with POST`,
    )
  }
}

/** A checked write of one record. A new record has no expected version. */
export interface ParsedSave {
  readonly draft: Draft
  readonly expected: ExpectedVersion | undefined
}

/** The data that was sent for a stored record. */
export interface UpdateInput {
  readonly id: number
  readonly data: unknown
}

/** Checks the permission and the data of a create. */
export function parseCreate(context: Context, model: Model, data: unknown): ParsedSave {
  const { principal, app } = context
  requirePermission(principal, 'create', model)
  refuseRecordKeys(data)
  return {
    draft: readCreateDraft(getVisibility(app, principal), model, data, context.now),
    expected: undefined,
  }
}

/** Checks the permission, the version and the data of an update. */
export async function parseUpdate(
  context: Context,
  model: Model,
  { id, data }: UpdateInput,
  options: UpdateOptions,
): Promise<ParsedSave> {
  const { app, principal, now } = context
  requireId(model, id)
  if (!mayUpdate(principal, model)) await requireUpdatable(context, model, id)
  const expected = parseUpdateVersion(data, id, options)
  const key = { id, version: expected.version }
  const read = readUpdateDraft(getVisibility(app, principal), model, { data, key }, now)
  return { draft: options.patch ? markPatchedFields(read) : read, expected }
}
