// The owned lists that were sent with a record: matched by id with those that are there, and replaced.
import type { ModelField } from '../../model/catalog/catalog.js'
import { memberId, type Draft, type DraftMember } from '../../model/write/draft.js'
import { FieldErrors, createFieldError } from '../../model/definition/field-errors.js'
import { isObject, type Values } from '../../model/values/value.js'
import { addMembers, findMembers, removeMembers } from '../../store/records/list-members.js'
import { lockReferenced } from '../../store/records/references.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import type { Removing } from './record-deleter.js'
import { seenAmong } from '../access/visible-records.js'
import type { Work } from '../context/context.js'

/** The list that a record is written for: it decides one of the record's references. */
export interface Parent {
  readonly list: ModelField
  readonly id: number
}

/** A Draft that changes nothing by itself. */
const NOTHING = { values: {}, related: new Map(), lists: new Map(), copies: new Map() } as const

export class Lists {
  constructor(
    private readonly work: Work,
    private readonly removing: Removing,
    private readonly write: (draft: Draft, parent?: Parent) => Promise<number>,
  ) {}

  async save(draft: Draft, id: number): Promise<void> {
    const { model, lists } = draft
    for (const [name, members] of lists) {
      const field = model.fields.get(name)
      if (!field) continue
      const list = { model, field }
      if (field.relation?.mappedBy === undefined) await this.#saveLinks(draft, list, id, members)
      else await this.#saveMembers(draft, list, id, members)
    }
  }

  /** Those who are no longer in the list are removed first: a new one may take the place of what is unique. */
  async #saveMembers(
    draft: Draft,
    list: ModelField,
    id: number,
    members: readonly DraftMember[],
  ): Promise<void> {
    const table = this.#targetOf(list)
    const current = new Set(await findMembers(this.work.tx, list, id))
    const staying = new Set(members.map(memberId))
    for (const member of current) {
      if (!staying.has(member)) await this.removing.removeMember(table, member, draft.path)
    }
    for (const [index, member] of members.entries()) {
      if (member.draft) await this.write(member.draft, { list, id })
      else if (!current.has(member.id))
        await this.#adopt(table, { list, id }, member.id, `${draft.path}${list.field.name}[${index}]`)
    }
  }

  /** A record that is in no list of this kind yet may be referred to; from another one it moves only under its own version. */
  async #adopt(table: Table, parent: Parent, id: number, place: string): Promise<void> {
    const { model } = table
    const seen = await seenAmong(this.work.app, this.work, this.work.tx, model, [id])
    const record = seen.has(id) ? await store.readForUpdate(this.work.tx, table, id) : undefined
    const owner = record?.[parent.list.field.relation?.mappedBy ?? '']
    if (!record) throw createFieldError(model, place, `there is no ${model.name} ${id}`)
    if (isObject(owner)) {
      // Whose list it is may not be told to everybody.
      const whose = this.work.rights
        ? 'another list'
        : `the list of ${parent.list.model.name} ${String(owner['id'])}`
      throw createFieldError(model, place, `is in ${whose}: send its "version" to move it`)
    }
    const key = { id, version: record.version }
    await this.write({ ...NOTHING, model, key, path: `${place}.` }, parent)
  }

  async #saveLinks(
    draft: Draft,
    list: ModelField,
    id: number,
    members: readonly DraftMember[],
  ): Promise<void> {
    const { tx } = this.work
    const current = new Set(await findMembers(tx, list, id))
    const ids: number[] = []
    for (const member of members) ids.push(member.draft ? await this.write(member.draft) : member.id)
    const table = this.#targetOf(list)
    const added = ids.filter((member) => !current.has(member))
    const held = await lockReferenced(tx, table, added)
    const there = await seenAmong(this.work.app, this.work, tx, table.model, [...held])
    const faults = new FieldErrors()
    for (const [index, member] of ids.entries()) {
      if (!current.has(member) && !there.has(member))
        faults.add(`${draft.path}${list.field.name}[${index}]`, `there is no ${table.model.name} ${member}`)
    }
    faults.refuseIfAny(draft.model)
    const staying = new Set(ids)
    const dropped = [...current].filter((member) => !staying.has(member))
    await removeMembers(tx, table.dialect, list, id, dropped)
    await addMembers(tx, table.dialect, list, id, added)
  }

  #targetOf({ field }: ModelField): Table {
    if (!field.relation) throw new Error(`${field.name} is no list`)
    return this.work.app.tables.of(this.work.app.catalog.getTarget(field.relation))
  }
}

/** The reference to the owner, for a member of a one-to-many. */
export function backReference(parent: Parent | undefined): Values {
  const reference = parent?.list.field.relation?.mappedBy
  return parent && reference !== undefined ? { [reference]: { id: parent.id } } : {}
}
