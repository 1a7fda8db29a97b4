// Checks the permissions of a transaction. The database evaluates the conditions before a record is changed and again after everything is
// written: a condition must hold for the record as found and as left.
import { VersoError } from '../../errors.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import type { PermissionAction } from '../../model/access/permissions.js'
import type { Queryable } from '../../store/engine/database.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import { throwNotFound } from './request-checks.js'
import type { WriteContext } from '../context/context.js'

/** The permissions on one record as it is now. */
export interface GrantedAccess {
  readonly isVisible: boolean
  /** The readable fields; all of them if undefined. */
  readonly readableFields: ReadonlySet<string> | undefined
  /** True if a grant for the action holds. */
  readonly isGranted: boolean
  /** The fields that these grants cover; all of them if undefined. */
  readonly writableFields: ReadonlySet<string> | undefined
}

export const FULL_ACCESS: GrantedAccess = {
  isVisible: true,
  readableFields: undefined,
  isGranted: true,
  writableFields: undefined,
}

/** A write that is checked again at the end of the transaction. */
interface PendingCheck {
  readonly table: Table
  readonly id: number
  readonly action: 'create' | 'update'
  readonly names: readonly string[]
  readonly path: string
}

type CheckedUpdate = Omit<PendingCheck, 'action'>

export class RecordAccess {
  #pending: PendingCheck[] = []

  constructor(private readonly context: WriteContext) {}

  async evaluate(action: PermissionAction, table: Table, id: number): Promise<GrantedAccess> {
    const permissions = this.context.principal.permissions?.of(table.model)
    if (!permissions) return FULL_ACCESS
    const [reading, acting] = [permissions.grantsFor('read'), permissions.grantsFor(action)]
    const conditions = [...reading, ...acting].map(({ where }) => where)
    const holds = await evaluateOptionalCriteria(this.context.tx, table, id, conditions)
    const readGrants = reading.filter((_, index) => holds[index])
    const heldGrants = acting.filter((_, index) => holds[reading.length + index])
    return {
      isVisible: readGrants.length > 0,
      readableFields: unionFields(readGrants.map(({ readable }) => readable)),
      isGranted: heldGrants.length > 0,
      writableFields: unionFields(heldGrants.map(({ writable }) => writable)),
    }
  }

  /**
   * Checks a record before it is removed. A record that is not visible does not exist for the principal; a hidden part of a record keeps
   * its owner from being removed.
   */
  async requireRemovable(table: Table, id: number, isPart: boolean): Promise<void> {
    const { isVisible, isGranted } = await this.evaluate('remove', table, id)
    const { model } = table
    if (!isVisible && !isPart) throwNotFound(model, id)
    if (isVisible && isGranted) return
    const what = isVisible ? `${model.name} ${id}` : 'every part of this record'
    throw new VersoError('forbidden', `You do not have permission to remove ${what}; nothing was changed`)
  }

  /** Registers a created record for the check at the end, when its lists are written. */
  addCreated(table: Table, id: number, names: readonly string[], path: string): void {
    if (this.context.principal.permissions) this.#pending.push({ table, id, action: 'create', names, path })
  }

  /** Checks an update against the permissions before the write, and registers it for the check at the end. */
  addUpdate(access: GrantedAccess, { table, id, names, path }: CheckedUpdate): void {
    if (!this.context.principal.permissions) return
    requireGranted(access, table, id)
    const update: PendingCheck = { table, id, action: 'update', names, path }
    refuseForbiddenFields(access, update)
    this.#pending.push(update)
  }

  /** Checks a record now because the transaction is about to write it again. */
  async checkRecord(model: Model, id: number): Promise<void> {
    const isSameRecord = (pending: PendingCheck) => pending.table.model === model && pending.id === id
    await this.#check(this.#pending.filter(isSameRecord))
    this.#pending = this.#pending.filter((pending) => !isSameRecord(pending))
  }

  /** Checks everything that was registered. */
  async checkAll(): Promise<void> {
    await this.#check(this.#pending)
  }

  async #check(all: readonly PendingCheck[]): Promise<void> {
    for (const pending of all) {
      const { table, id, action, path } = pending
      const access = await this.evaluate(action, table, id)
      if (!access.isGranted) throw createForbiddenError(action, table.model, id, path)
      refuseForbiddenFields(access, pending)
    }
  }
}

/** Runs before any message about the version, so that the message does not reveal it. */
export function requireGranted({ isGranted }: GrantedAccess, { model }: Table, id: number): void {
  if (!isGranted) throw createForbiddenError('update', model, id)
}

/** Evaluates the criteria for a record. Undefined criteria are true for every record. */
export async function evaluateOptionalCriteria(
  db: Queryable,
  table: Table,
  id: number,
  criteria: readonly (Criteria | undefined)[],
): Promise<boolean[]> {
  const conditions = criteria.filter((each) => each !== undefined)
  const results =
    conditions.length === 0 ? [] : ((await store.evaluateCriteria(db, table, id, conditions)) ?? [])
  return criteria.map((each) => each === undefined || results[conditions.indexOf(each)] === true)
}

/** Returns undefined, which means all fields, if one of the lists is undefined. */
function unionFields(lists: readonly (ReadonlySet<string> | undefined)[]): ReadonlySet<string> | undefined {
  const names = new Set<string>()
  for (const list of lists) {
    if (!list) return undefined
    for (const name of list) names.add(name)
  }
  return names
}

function createForbiddenError(
  action: 'create' | 'update',
  { name }: Model,
  id: number,
  path = '',
): VersoError {
  const what = action === 'create' ? `create this ${name}` : `update ${name} ${id} in this way`
  return new VersoError('forbidden', `You do not have permission to ${what}; nothing was changed`, { path })
}

function refuseForbiddenFields(
  { writableFields }: GrantedAccess,
  { table, action, names, path }: PendingCheck,
): void {
  const refused = writableFields ? names.filter((name) => !writableFields.has(name)) : []
  if (refused.length === 0) return
  const verb = action === 'create' ? 'set' : 'change'
  const errors = Object.fromEntries(
    refused.map((name) => [
      path + name,
      `cannot be ${action === 'create' ? 'set' : 'changed'} with your permissions`,
    ]),
  )
  const message = `You do not have permission to ${verb} ${refused.map((name) => path + name).join(', ')} of this ${table.model.name}; nothing was changed`
  throw new VersoError('forbidden', message, { errors })
}
