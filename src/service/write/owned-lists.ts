// Writes the owned lists of a record. Matches the sent members with the stored ones by id and removes the rest.
import type { ModelField } from '../../model/catalog/catalog.js'
import type { Model } from '../../model/definition/model.js'
import { getMemberId, type Draft, type DraftMember } from '../../model/write/draft.js'
import { FieldErrors, createFieldError } from '../../model/definition/field-errors.js'
import { findReferenceId, isObject, type Values } from '../../model/values/value.js'
import { addMembers, findMembers, removeMembers } from '../../store/records/list-members.js'
import { lockReferenced } from '../../store/records/references.js'
import * as store from '../../store/records/records.js'
import type { Table } from '../../store/sql/table.js'
import type { ChangeSet } from './change-set.js'
import type { RecordDeleter } from './record-deleter.js'
import { toValues } from '../../model/definition/record-values.js'
import type { WireRecord } from '../../wire.js'
import { pickChangedValues } from './write-rows.js'
import { listChangedFields } from '../access/changed-fields.js'
import { FULL_ACCESS } from '../access/record-access.js'
import { filterVisibleIds } from '../access/visible-records.js'
import type { WriteContext } from '../context/context.js'

/** The list that a member is written for. It sets the member's reference to the owner. */
export interface ListOwner {
  readonly list: ModelField
  readonly id: number
}

/** The functions that remove and write the members of a list. */
interface ListWriterParts {
  readonly deleter: RecordDeleter
  /** Shows what hooks have written; undefined for the writes of a hook. */
  readonly hooked: ChangeSet | undefined
  /** True if hooks have written in this transaction. Nothing else changes a list after it was read: its owner is locked. */
  readonly haveHooksWritten: () => boolean
  readonly write: (draft: Draft, parent?: ListOwner) => Promise<number>
}

/** A list that a draft sets. */
interface SentList {
  readonly draft: Draft
  readonly list: ModelField
  readonly id: number
  readonly members: readonly DraftMember[]
  /** The members that the client has seen. */
  readonly base: ReadonlySet<number>
}

/** A Draft without changes. */
const EMPTY_DRAFT = { values: {}, related: new Map(), lists: new Map(), copies: new Map() } as const

export class OwnedListWriter {
  constructor(
    private readonly context: WriteContext,
    private readonly parts: ListWriterParts,
  ) {}

  /** `base` is the record that the lists of the draft are based on; undefined for a new record. */
  async save(draft: Draft, id: number, base: WireRecord | undefined): Promise<void> {
    const { model, lists } = draft
    for (const [name, members] of lists) {
      const field = model.fields.get(name)
      if (!field) continue
      const sent = { draft, list: { model, field }, id, members, base: listMemberIds(base?.[name]) }
      if (field.relation?.mappedBy === undefined) await this.#saveLinks(sent)
      else await this.#saveMembers(sent)
    }
  }

  /** Removes the members that are no longer in the list first: a new member may have the same unique value. */
  async #saveMembers({ draft, list, id, members, base }: SentList): Promise<void> {
    const table = this.#findTargetTable(list)
    const field = list.field.relation?.mappedBy ?? ''
    const wasMember = (member: number) =>
      this.parts.hooked?.wasMemberBeforeHooks({ model: table.model, id: member }, field, id)
    const current = new Set(await findMembers(this.context.tx, list, id))
    const seen = this.parts.haveHooksWritten() ? base : current
    const staying = new Set(members.map(getMemberId))
    for (const member of current) {
      // A member that a hook has added stays: the client does not know it.
      const isOfHook = !seen.has(member) || wasMember(member) === false
      if (!staying.has(member) && !isOfHook)
        await this.parts.deleter.removeMember(table, member, { owner: { field, id }, path: draft.path })
    }
    for (const [index, member] of members.entries()) {
      if (member.draft) await this.parts.write(member.draft, { list, id })
      else if (!current.has(member.id) && !seen.has(member.id) && wasMember(member.id) !== true)
        await this.#adoptMember(table, { list, id }, member.id, `${draft.path}${list.field.name}[${index}]`)
    }
  }

  /** Adds a record that is in no such list yet. A record in another list moves only if its version is sent. */
  async #adoptMember(table: Table, parent: ListOwner, id: number, path: string): Promise<void> {
    const { model } = table
    const visibleIds = await filterVisibleIds(this.context, model, [id])
    const record = visibleIds.has(id) ? await store.readForUpdate(this.context.tx, table, id) : undefined
    const owner = record?.[parent.list.field.relation?.mappedBy ?? '']
    if (!record) throw createFieldError(model, path, `refers to ${model.name} ${id}, which does not exist`)
    if (isObject(owner)) {
      // The name of the other owner is only for principals who may see it.
      const whose = this.context.principal.permissions
        ? 'another list'
        : `the list of ${parent.list.model.name} ${String(owner['id'])}`
      throw createFieldError(model, path, `is in ${whose}: send its "version" to move it`)
    }
    const key = { id, version: record.version }
    await this.parts.write({ ...EMPTY_DRAFT, model, key, path: `${path}.` }, parent)
  }

  async #saveLinks({ draft, list, id, members, base }: SentList): Promise<void> {
    const { tx } = this.context
    const ids: number[] = []
    for (const member of members) ids.push(member.draft ? await this.parts.write(member.draft) : member.id)
    const table = this.#findTargetTable(list)
    const current = new Set(await findMembers(tx, list, id))
    const seen = this.parts.haveHooksWritten() ? base : current
    // Links that a hook has added or removed stay as they are: the client does not know that.
    const added = ids.filter((member) => !current.has(member) && !seen.has(member))
    const locked = await lockReferenced(tx, table, added)
    const visible = await filterVisibleIds(this.context, table.model, [...locked])
    const errors = new FieldErrors()
    for (const [index, member] of ids.entries()) {
      if (added.includes(member) && !visible.has(member))
        errors.add(
          `${draft.path}${list.field.name}[${index}]`,
          `refers to ${table.model.name} ${member}, which does not exist`,
        )
    }
    errors.refuseIfAny(draft.model)
    const staying = new Set(ids)
    const dropped = [...current].filter((member) => !staying.has(member) && seen.has(member))
    await removeMembers(tx, table.dialect, { list, owner: id }, dropped)
    await addMembers(tx, table.dialect, { list, owner: id }, added)
  }

  #findTargetTable({ field }: ModelField): Table {
    if (!field.relation) throw new Error(`${field.name} is not a list`)
    return this.context.app.tables.of(this.context.app.catalog.getTarget(field.relation))
  }
}

/** True if the write changes a value that a client cannot set, or a member of an owned list. */
export async function changesRecord(
  context: WriteContext,
  draft: Draft,
  before: WireRecord,
  values: Values,
): Promise<boolean> {
  return changesValues(draft.model, before, values) || changesMembers(context, draft)
}

export function changesValues(model: Model, before: WireRecord, values: Values): boolean {
  return Object.keys(pickChangedValues(toValues(model, before), values)).length > 0
}

/** True if a member of an owned list inside the draft gets another value. Members that come or go are changes of the list itself. */
async function changesMembers(context: WriteContext, { lists }: Draft): Promise<boolean> {
  const { tx, app } = context
  for (const { draft } of [...lists.values()].flat()) {
    if (!draft?.key) continue
    const stored = await store.readById(tx, app.tables.of(draft.model), draft.key.id)
    if (stored && listChangedFields(draft, stored, draft.values, FULL_ACCESS).length > 0) return true
    if (await changesMembers(context, draft)) return true
  }
  return false
}

function listMemberIds(members: unknown): Set<number> {
  return new Set((Array.isArray(members) ? members : []).map((member) => findReferenceId(member) ?? 0))
}

/** Builds the reference of a one-to-many member to its owner. */
export function buildBackReference(parent: ListOwner | undefined): Values {
  const reference = getOwnerField(parent)
  return parent && reference !== undefined ? { [reference]: { id: parent.id } } : {}
}

/** Returns the name of the reference by which a member refers to its owner. */
export function getOwnerField(parent: ListOwner | undefined): string | undefined {
  return parent?.list.field.relation?.mappedBy
}
