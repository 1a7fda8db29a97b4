// Removing a record with all that is part of it, and nothing that others still need.
import { VersoError } from '../../errors.js'
import { andCriteria } from '../../model/query/criteria.js'
import { isOwnedList, type Model } from '../../model/definition/model.js'
import { isObject } from '../../model/values/value.js'
import { findMembers, findOwners, removeAllMemberships } from '../../store/records/list-members.js'
import * as store from '../../store/records/records.js'
import { readReferences, toReferrer, findReferringRecords } from '../../store/records/references.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { fileChanges, filesToReplace, letGo } from './held-files.js'
import type { Identity } from './lock-order.js'
import type { Permits } from '../access/record-access.js'
import { seenAmong } from '../access/visible-records.js'
import { HeldRecords, type Touched } from './change-set.js'
import { endSessionsIfRemoved } from '../auth/user-sessions.js'
import type { Work } from '../context/context.js'

export class Removing {
  /** And where in the request that was asked for. */
  readonly #removed = new Map<Model, Map<number, string>>()
  /** What was asked about, where not everything may be removed. */
  readonly #judged = new Set<string>()

  constructor(
    private readonly work: Work,
    private readonly touched: Touched,
    private readonly permits: Permits,
  ) {}

  /** False if the record is no longer at this version. */
  async remove(table: Table, record: WireRecord, place: string): Promise<boolean> {
    await this.#requireRemovable(await this.#partsOf(table.model, record.id))
    return this.#remove(table, record, place)
  }

  async #remove(table: Table, record: WireRecord, place: string): Promise<boolean> {
    const { tx, app } = this.work
    const { model } = table
    const done = this.touched.doneTo(model, record.id)
    if (done !== undefined)
      throw new VersoError('bad-request', `${model.name} ${record.id} is ${done} and dropped in one request`)
    await this.#lockParents(model, record)
    await store.lockForRemoval(tx, table, record.id)
    await this.#lockLinked(model, record)
    // As they are while the record is still there: they refer to it, and the Log is to say so.
    const members = await this.#readMembers(model, record.id)
    const files = await filesToReplace(tx, table, record.id)
    const held = await this.withReferences(table, record)
    const [isDone] = await store.remove(tx, table, [record])
    if (!isDone) return false
    this.touched.gone(table, held)
    await letGo(this.work, files.values())
    this.touched.changedFiles(table, record.id, fileChanges(table, files))
    const removed = this.#removed.get(model)
    if (removed) removed.set(record.id, place)
    else this.#removed.set(model, new Map([[record.id, place]]))
    await endSessionsIfRemoved(tx, model, record.id)
    for (const member of members) await this.#removeRead(member, place)
    for (const field of model.fields.values()) {
      const isLinks = isOwnedList(field) && field.relation?.mappedBy === undefined
      if (isLinks) await removeAllMemberships(tx, { model, field }, 'owner', record.id)
    }
    for (const list of app.catalog.linksTo(model)) await removeAllMemberships(tx, list, 'member', record.id)
    return true
  }

  /** A record that went before it in this transaction is not shown with it any more; the Log is to say that it referred to it. */
  async withReferences(table: Table, record: WireRecord): Promise<WireRecord> {
    if (this.#removed.size === 0) return record
    const held = await readReferences(this.work.tx, table, record.id)
    const lost = [...held].filter(([name]) => (record[name] ?? null) === null)
    return { ...record, ...Object.fromEntries(lost.map(([name, id]) => [name, { id }])) }
  }

  /** A member by its id, which may be gone already. */
  async removeMember(table: Table, id: number, place: string): Promise<void> {
    const record = await store.readForUpdate(this.work.tx, table, id)
    if (!record) return
    await this.#requireRemovable([{ table, record }])
    await this.#removeRead({ table, record }, place)
  }

  /** What would go with it. */
  async allPartsOf({ model, id }: Identity, found = new Map<string, Identity>()): Promise<Identity[]> {
    const { tx, app } = this.work
    for (const field of model.fields.values()) {
      const { relation } = field
      if (!isOwnedList(field) || relation?.mappedBy === undefined) continue
      for (const member of await findMembers(tx, { model, field }, id)) {
        const part = { model: app.catalog.getTarget(relation), id: member }
        const name = nameOf(part.model, member)
        // Records may own each other.
        if (found.has(name)) continue
        found.set(name, part)
        await this.allPartsOf(part, found)
      }
    }
    return [...found.values()]
  }

  /** Once everything is written: what is gone must not be referred to. */
  async refuseIfReferenced(): Promise<void> {
    const { app, tx } = this.work
    const references: Reference[] = []
    let needed: Needed | undefined
    for (const [model, places] of this.#removed) {
      const ids = [...places.keys()]
      const strangers = app.undeclared.filter(({ target }) => target === model.name)
      for (const referrer of [...app.catalog.referencesTo(model).map(toReferrer), ...strangers]) {
        const {
          total,
          ids: shown,
          firstTarget,
        } = await findReferringRecords(tx, app.db.dialect, referrer, ids)
        if (total === 0) continue
        needed ??= { model, id: firstTarget, place: places.get(firstTarget) ?? '' }
        const reference = { entityName: referrer.model, field: referrer.field, total, ids: shown }
        references.push(...(await this.#asSeen(reference)))
      }
    }
    if (needed) throw stillReferenced(needed, references)
  }

  /** Each part of what goes, while everything is still there: a condition may look at the owner. */
  async #requireRemovable(parts: readonly Member[]): Promise<void> {
    for (const { table, record } of parts) {
      const name = nameOf(table.model, record.id)
      if (this.#judged.has(name) || this.touched.goneFrom(table.model, record.id)) continue
      this.#judged.add(name)
      await this.permits.requireRemovable(table, record.id, true)
      await this.#requireRemovable(await this.#partsOf(table.model, record.id))
    }
  }

  /** Only asked for where somebody may not remove everything. */
  async #partsOf(model: Model, id: number): Promise<Member[]> {
    return this.work.rights ? this.#readMembers(model, id) : []
  }

  /** Of those that still refer to it the caller is told as far as they may see them. */
  async #asSeen(reference: Reference): Promise<Reference[]> {
    const { app, rights, tx } = this.work
    if (!rights) return [reference]
    const model = app.catalog.storedModels.find(({ name }) => name === reference.entityName)
    const field = model && rights.findReadable(model, reference.field)
    if (!model || !field) return []
    const told = andCriteria(rights.of(model).criteriaFor('read'), rights.mask(model, field))
    const ids = [...(await seenAmong(app, this.work, tx, model, reference.ids, told))]
    return ids.length > 0 ? [{ ...reference, total: ids.length, ids }] : []
  }

  /** Those whose owned list has this record: the list changes, and so do they. An owner is locked before its members, always. */
  async #lockParents(model: Model, record: WireRecord): Promise<void> {
    const { app } = this.work
    const owners = [...model.fields.values()].flatMap((field) => {
      const list = app.catalog.findOwner(model, field)
      const reference = record[field.name]
      return list && isObject(reference) ? [{ model: list.model, id: Number(reference['id']) }] : []
    })
    await this.touched.lockOwners(owners)
  }

  /** The same over many-to-many, once nobody can link the record any more. */
  async #lockLinked(model: Model, record: WireRecord): Promise<void> {
    const { app, tx } = this.work
    for (const list of app.catalog.linksTo(model)) {
      const owners = await findOwners(tx, list, record.id)
      await this.touched.lockOwners(owners.map((id) => ({ model: list.model, id })))
    }
  }

  /** The members of its owned lists. */
  async #readMembers(model: Model, owner: number): Promise<Member[]> {
    const { tx, app } = this.work
    const members: Member[] = []
    const held = new HeldRecords()
    for (const field of model.fields.values()) {
      const { relation } = field
      if (!isOwnedList(field) || relation?.mappedBy === undefined) continue
      const table = app.tables.of(app.catalog.getTarget(relation))
      for (const id of await findMembers(tx, { model, field }, owner)) {
        const record = await store.readForUpdate(tx, table, id)
        if (!record) continue
        // They are in memory together before the first of them goes.
        held.add(table.model, record)
        members.push({ table, record })
      }
    }
    return members
  }

  /** Records may own each other: one may be gone already. */
  async #removeRead({ table, record }: Member, place: string): Promise<void> {
    if (this.touched.goneFrom(table.model, record.id)) return
    // One that came in between was not asked about.
    if (this.work.rights && !this.#judged.has(nameOf(table.model, record.id)))
      await this.#requireRemovable([{ table, record }])
    if (!(await this.#remove(table, record, place)))
      throw new Error(`${table.model.name} ${record.id} was locked`)
  }
}

function nameOf({ name }: Model, id: number): string {
  return `${name} ${id}`
}

interface Member {
  readonly table: Table
  readonly record: WireRecord
}

interface Needed {
  readonly model: Model
  readonly id: number
  readonly place: string
}

interface Reference {
  readonly entityName: string
  readonly field: string
  readonly total: number
  /** The first of them. */
  readonly ids: readonly number[]
}

function stillReferenced({ model, id, place: path }: Needed, references: readonly Reference[]): VersoError {
  const who = references.map(({ entityName, field, total, ids }) => {
    const more = total > ids.length ? ` and ${total - ids.length} more` : ''
    return `${entityName} ${ids.join(', ')}${more} (${field})`
  })
  const by = who.length > 0 ? who.join('; ') : 'others'
  const message = `${model.name} ${id} is still referred to by ${by}: nothing was deleted`
  return new VersoError('still-referenced', message, {
    data: { entityName: model.name, entityId: id, references },
    path,
  })
}
