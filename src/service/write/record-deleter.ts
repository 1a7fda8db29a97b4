// Removes a record with the members of its owned lists. Refuses to remove a record that others still refer to.
import { VersoError } from '../../errors.js'
import { isOwnedList, type Model } from '../../model/definition/model.js'
import { findReferenceId, isObject } from '../../model/values/value.js'
import { findMembers, findOwners, removeAllMemberships } from '../../store/records/list-members.js'
import * as store from '../../store/records/records.js'
import { deleteRows } from '../../store/records/write.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { diffFiles, findReplacedFiles, releaseFiles } from './held-files.js'
import type { RecordIdentity } from './lock-order.js'
import type { RecordAccess } from '../access/record-access.js'
import { HeldRecordLimit, formatRecordName } from './change-limits.js'
import type { ChangeSet } from './change-set.js'
import type { ModelHooks } from '../context/app.js'
import type { RecordHooks } from './run-hooks.js'
import type { WriteContext } from '../context/context.js'

/** The parts of a WriteState that a removal needs. */
export interface DeleterParts {
  readonly changeSet: ChangeSet
  readonly access: RecordAccess
  readonly hooks: RecordHooks
  /** Checks the permissions for what was written to the record, and completes its Change. The next write makes a new version. */
  completeRecord(model: Model, id: number): Promise<void>
  /** Throws while hooks run before the record is written. */
  refusePending(model: Model, id: number): void
}

export class RecordDeleter {
  /** The records whose permission was checked. */
  readonly #checked = new Set<string>()

  constructor(
    private readonly context: WriteContext,
    private readonly parts: DeleterParts,
  ) {}

  /** Returns false if the record no longer has this version. */
  async remove(table: Table, record: WireRecord, path: string): Promise<boolean> {
    await this.#requireRemovable(await this.#readParts(table.model, record.id))
    return this.#removeRecord(table, record, path)
  }

  async #removeRecord(table: Table, found: WireRecord, path: string): Promise<boolean> {
    const { tx, app } = this.context
    const { model } = table
    const { id } = found
    this.parts.refusePending(model, id)
    const done = this.parts.changeSet.describeWrite(model, id)
    // The record of a hook gets a Change for what was written so far, and one for its removal.
    if (done !== undefined && this.#mayRemoveAfterWrite(model, id)) await this.parts.completeRecord(model, id)
    else if (done !== undefined)
      throw new VersoError(
        'bad-request',
        `${model.name} ${id} is ${done} and deleted in the same request; nothing was changed`,
      )
    await this.#lockParents(model, found)
    await store.lockForRemoval(tx, table, id)
    await this.#lockLinkingOwners(model, found)
    const hooks = this.parts.hooks.find(model)
    const record = hooks ? await this.#runBeforeRemove(hooks, table, found) : found
    if (!record) return this.#isRemovedByHook(model, id)
    // Read before the removal: the Log must contain that the members refer to the record.
    const members = await this.#readMembers(model, id)
    await this.#completeMembers(members)
    const files = await findReplacedFiles(tx, table, id)
    const fullRecord = await this.parts.changeSet.addLostReferences(table, record)
    const [isDone] = await deleteRows(tx, table, [record])
    if (!isDone) return this.#isRemovedByHook(model, id)
    this.parts.changeSet.addRemoved(table, fullRecord, path, this.parts.hooks.areNested)
    await releaseFiles(this.context, files.values())
    this.parts.changeSet.setFileChanges(table, id, diffFiles(table, files))
    for (const member of members) await this.#removeMemberRecord(member, path)
    for (const field of model.fields.values()) {
      const isLinks = isOwnedList(field) && field.relation?.mappedBy === undefined
      if (isLinks) await removeAllMemberships(tx, { model, field }, 'owner', id)
    }
    for (const list of app.catalog.linksTo(model)) await removeAllMemberships(tx, list, 'member', id)
    if (hooks?.afterRemove)
      await hooks.afterRemove(this.parts.hooks.hookContext, { model, record: fullRecord })
    return true
  }

  /** True if a hook removes the record, or has written it: the request may not write and remove a record itself. */
  #mayRemoveAfterWrite(model: Model, id: number): boolean {
    return this.parts.hooks.areNested || this.parts.changeSet.isWrittenByHooks(model, id)
  }

  /** True if a hook of this removal has removed the record itself, for example with its owner. */
  #isRemovedByHook(model: Model, id: number): boolean {
    return this.parts.changeSet.findRemoved(model, id) !== undefined
  }

  /** Completes the Changes of members that hooks have written, while these still refer to their owner. */
  async #completeMembers(members: readonly MemberRecord[]): Promise<void> {
    for (const { table, record } of members)
      if (
        this.#mayRemoveAfterWrite(table.model, record.id) &&
        this.parts.changeSet.isWritten(table.model, record.id)
      )
        await this.parts.completeRecord(table.model, record.id)
  }

  /**
   * Runs the hooks before a removal. They may write the record, so it is returned as it is afterwards. Undefined if another transaction has
   * changed the record before it was locked: the hooks have not run then.
   */
  async #runBeforeRemove(
    hooks: ModelHooks,
    table: Table,
    record: WireRecord,
  ): Promise<WireRecord | undefined> {
    const { tx } = this.context
    const { model } = table
    if ((await store.findVersion(tx, table, record.id)) !== record.version) return undefined
    if (!hooks.beforeRemove) return record
    const removed = await this.parts.changeSet.addLostReferences(table, record)
    await hooks.beforeRemove(this.parts.hooks.hookContext, { model, record: removed })
    if (!this.parts.changeSet.isWritten(model, record.id)) return record
    await this.parts.completeRecord(model, record.id)
    return store.readById(tx, table, record.id)
  }

  /** Removes a member, unless it is already gone. */
  async removeMember(table: Table, id: number, { owner, path }: MemberRemoval): Promise<void> {
    const record = await store.readForUpdate(this.context.tx, table, id)
    if (!record) return
    await this.#requireRemovable([{ table, record }])
    await this.#removeMemberRecord({ table, record, owner }, path)
  }

  /** Collects the members of owned lists that a removal includes, at all depths. */
  async collectParts(
    { model, id }: RecordIdentity,
    found = new Map<string, RecordIdentity>(),
  ): Promise<RecordIdentity[]> {
    const { tx, app } = this.context
    for (const field of model.fields.values()) {
      const { relation } = field
      if (!isOwnedList(field) || relation?.mappedBy === undefined) continue
      for (const member of await findMembers(tx, { model, field }, id)) {
        const part = { model: app.catalog.getTarget(relation), id: member }
        const name = formatRecordName(part.model, member)
        // Two records may own each other.
        if (found.has(name)) continue
        found.set(name, part)
        await this.collectParts(part, found)
      }
    }
    return [...found.values()]
  }

  /** Checks the permission for each member before anything is removed, because a condition may read the owner. */
  async #requireRemovable(parts: readonly MemberRecord[]): Promise<void> {
    for (const { table, record } of parts) {
      const name = formatRecordName(table.model, record.id)
      if (this.#checked.has(name) || this.parts.changeSet.findRemoved(table.model, record.id)) continue
      this.#checked.add(name)
      await this.parts.access.requireRemovable(table, record.id, true)
      await this.#requireRemovable(await this.#readParts(table.model, record.id))
    }
  }

  /** Returns nothing for a principal who may do everything: there is nothing to check. */
  async #readParts(model: Model, id: number): Promise<MemberRecord[]> {
    return this.context.principal.permissions ? this.#readMembers(model, id) : []
  }

  /** Locks the owners whose lists contain this record, because they get a new version. Owners are always locked before members. */
  async #lockParents(model: Model, record: WireRecord): Promise<void> {
    const { app } = this.context
    const owners = [...model.fields.values()].flatMap((field) => {
      const list = app.catalog.findOwner(model, field)
      const reference = record[field.name]
      return list && isObject(reference) ? [{ model: list.model, id: Number(reference['id']) }] : []
    })
    await this.parts.changeSet.lockOwners(owners)
  }

  /** Locks the owners of many-to-many lists. The record is locked already, so no transaction can link it any more. */
  async #lockLinkingOwners(model: Model, record: WireRecord): Promise<void> {
    const { app, tx } = this.context
    for (const list of app.catalog.linksTo(model)) {
      const owners = await findOwners(tx, list, record.id)
      await this.parts.changeSet.lockOwners(owners.map((id) => ({ model: list.model, id })))
    }
  }

  /** Reads and locks the members of its owned lists. */
  async #readMembers(model: Model, owner: number): Promise<MemberRecord[]> {
    const { tx, app } = this.context
    const members: MemberRecord[] = []
    const limit = new HeldRecordLimit()
    for (const field of model.fields.values()) {
      const { relation } = field
      if (!isOwnedList(field) || relation?.mappedBy === undefined) continue
      const table = app.tables.of(app.catalog.getTarget(relation))
      for (const id of await findMembers(tx, { model, field }, owner)) {
        const record = await store.readForUpdate(tx, table, id)
        if (!record) continue
        // All members are in memory before the first one is removed.
        limit.add(table.model, record)
        members.push({ table, record, owner: { field: relation.mappedBy, id: owner } })
      }
    }
    return members
  }

  /** Two records may own each other, so a member may already be removed. A hook may have changed it, or moved it to another owner. */
  async #removeMemberRecord(member: MemberRecord, path: string): Promise<void> {
    const { table, owner } = member
    const { changeSet } = this.parts
    if (changeSet.findRemoved(table.model, member.record.id)) return
    const record = await changeSet.refreshRecord(table, member.record)
    if (!record || (owner && findReferenceId(record[owner.field]) !== owner.id)) return
    // A member that was added after the check needs a check of its own.
    if (this.context.principal.permissions && !this.#checked.has(formatRecordName(table.model, record.id)))
      await this.#requireRemovable([{ table, record }])
    if (!(await this.#removeRecord(table, record, path)))
      throw new Error(`${table.model.name} ${record.id} was locked but could not be deleted`)
  }
}

interface MemberOwner {
  readonly field: string
  readonly id: number
}

interface MemberRemoval {
  readonly owner: MemberOwner
  readonly path: string
}

interface MemberRecord {
  readonly table: Table
  readonly record: WireRecord
  /** The owner that is removed, and the reference to it. */
  readonly owner?: MemberOwner
}
