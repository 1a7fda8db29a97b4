// What a transaction may write. Asked of the database, before a record is changed and again once everything is written: a condition
// holds for the record that somebody finds, and for the one that they leave.
import { VersoError } from '../../errors.js'
import type { Criteria } from '../../model/query/criteria.js'
import type { Model } from '../../model/definition/model.js'
import type { PermissionAction } from '../../model/access/permissions.js'
import type { Queryable } from '../../store/engine/database.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import { missing } from '../context/ids.js'
import type { Work } from '../context/context.js'

/** What may be done with one record as it is now. */
export interface Permit {
  readonly isSeen: boolean
  /** The fields that are shown of it; all of them if undefined. */
  readonly shown: ReadonlySet<string> | undefined
  /** Whether any grant for the action holds. */
  readonly isGranted: boolean
  /** The fields that those grants are for; all of them if undefined. */
  readonly fields: ReadonlySet<string> | undefined
}

const EVERYTHING: Permit = { isSeen: true, shown: undefined, isGranted: true, fields: undefined }

/** A write that has to be looked at again. */
interface Pending {
  readonly table: Table
  readonly id: number
  readonly action: 'create' | 'update'
  readonly names: readonly string[]
  readonly place: string
}

export class Permits {
  #pending: Pending[] = []

  constructor(private readonly work: Work) {}

  async of(action: PermissionAction, table: Table, id: number): Promise<Permit> {
    const rights = this.work.rights?.of(table.model)
    if (!rights) return EVERYTHING
    const [reading, acting] = [rights.grantsFor('read'), rights.grantsFor(action)]
    const asked = [...reading, ...acting].map(({ where }) => where)
    const holds = await holding(this.work.tx, table, id, asked)
    const showing = reading.filter((_, index) => holds[index])
    const held = acting.filter((_, index) => holds[reading.length + index])
    return {
      ...{ isSeen: showing.length > 0, shown: union(showing.map(({ readable }) => readable)) },
      ...{ isGranted: held.length > 0, fields: union(held.map(({ writable }) => writable)) },
    }
  }

  /** Before a record goes. One that stands for itself and may not be seen is not there; one that is part of another keeps that one. */
  async requireRemovable(table: Table, id: number, isPart: boolean): Promise<void> {
    const { isSeen, isGranted } = await this.of('remove', table, id)
    const { model } = table
    if (!isSeen && !isPart) missing(model, id)
    if (isSeen && isGranted) return
    const what = isSeen ? `${model.name} ${id}` : 'all that is part of this record'
    throw new VersoError('forbidden', `You may not remove ${what}: nothing was deleted`)
  }

  /** Judged at the end: its lists are not there yet. */
  made(table: Table, id: number, names: readonly string[], place: string): void {
    if (this.work.rights) this.#pending.push({ table, id, action: 'create', names, place })
  }

  /** What is to be changed in a record, as it was permitted before; judged again at the end. */
  changing(table: Table, id: number, permit: Permit, names: readonly string[], place: string): void {
    if (!this.work.rights) return
    requireGranted(permit, table, id)
    refuseFields('update', table.model, permit.fields, names, place)
    this.#pending.push({ table, id, action: 'update', names, place })
  }

  /** One that is about to be written once more: it is judged as it is now. */
  async settle(model: Model, id: number): Promise<void> {
    const isMeant = (pending: Pending) => pending.table.model === model && pending.id === id
    await this.#judge(this.#pending.filter(isMeant))
    this.#pending = this.#pending.filter((pending) => !isMeant(pending))
  }

  /** Once everything is written. */
  async finish(): Promise<void> {
    await this.#judge(this.#pending)
  }

  async #judge(all: readonly Pending[]): Promise<void> {
    for (const { table, id, action, names, place } of all) {
      const { isGranted, fields } = await this.of(action, table, id)
      if (!isGranted) throw forbidden(action, table.model, id, place)
      refuseFields(action, table.model, fields, names, place)
    }
  }
}

/** Before anything is said of its version. */
export function requireGranted({ isGranted }: Permit, { model }: Table, id: number): void {
  if (!isGranted) throw forbidden('update', model, id)
}

/** Which of these are true of a record; one that is undefined is true of all. */
export async function holding(
  db: Queryable,
  table: Table,
  id: number,
  criteria: readonly (Criteria | undefined)[],
): Promise<boolean[]> {
  const asked = criteria.filter((each) => each !== undefined)
  const answers = asked.length === 0 ? [] : ((await store.evaluateCriteria(db, table, id, asked)) ?? [])
  return criteria.map((each) => each === undefined || answers[asked.indexOf(each)] === true)
}

/** One that is undefined has everything. */
function union(lists: readonly (ReadonlySet<string> | undefined)[]): ReadonlySet<string> | undefined {
  const names = new Set<string>()
  for (const list of lists) {
    if (!list) return undefined
    for (const name of list) names.add(name)
  }
  return names
}

function forbidden(action: 'create' | 'update', { name }: Model, id: number, path = ''): VersoError {
  const what = action === 'create' ? `make such a ${name}` : `change ${name} ${id} in this way`
  return new VersoError('forbidden', `You may not ${what}: nothing was written`, { path })
}

function refuseFields(
  action: 'create' | 'update',
  { name: model }: Model,
  fields: ReadonlySet<string> | undefined,
  names: readonly string[],
  place: string,
): void {
  const refused = fields ? names.filter((name) => !fields.has(name)) : []
  if (refused.length === 0) return
  const verb = action === 'create' ? 'set' : 'change'
  const errors = Object.fromEntries(refused.map((name) => [place + name, `you may not ${verb} it`]))
  const message = `You may not ${verb} ${refused.map((name) => place + name).join(', ')} of this ${model}: nothing was written`
  throw new VersoError('forbidden', message, { errors })
}
