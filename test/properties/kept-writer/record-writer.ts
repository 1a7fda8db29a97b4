// Writes a draft: the record, the related records inside it, and the owners whose lists change. An instance serves one attempt of a
// transaction.
import { type Draft, type VersionedId } from '../../../src/model/write/draft.js'
import { createFieldError } from '../../../src/model/definition/field-errors.js'
import { applyPatchToDraft } from '../../../src/model/write/merge-patch.js'
import { type Model } from '../../../src/model/definition/model.js'
import { describeAmbiguousChange } from '../../../src/model/write/repeated-references.js'
import { isSameValue, type Values } from '../../../src/model/values/value.js'
import { computeValues, toValues } from '../../../src/model/definition/record-values.js'
import type { NewChange } from '../../../src/store/log/log.js'
import * as store from '../../../src/store/records/records.js'
import { updateRows } from '../../../src/store/records/write.js'
import type { Table } from '../../../src/store/sql/table.js'
import type { WireRecord } from '../../../src/wire.js'
import { toUserReference } from '../../../src/service/write/write-rows.js'
import { listChangedFields, listSetFields } from '../../../src/service/access/changed-fields.js'
import {
  createConflictError,
  refuseStaleDraft,
  refuseStaleInside,
  refuseStaleWrite,
} from '../../../src/service/write/conflict.js'
import { assignNumbers, insertRow, type RestoredRecord } from './insert-row.js'
import { listOwners, lockReferences } from '../../../src/service/write/lock-order.js'
import { diffFiles, findReplacedFiles, releaseFiles } from '../../../src/service/write/held-files.js'
import { inPlace } from './in-place.js'
import { refuseChangedInverses } from '../../../src/service/input/sent-inverses.js'
import { buildBackReference, getOwnerField, OwnedListWriter, type ListOwner } from './owned-lists.js'
import { pickFields } from '../../../src/service/write/conflict-view.js'
import type { RecordIdentity } from '../../../src/service/write/lock-order.js'
import { requirePermission, throwNotFound } from '../../../src/service/access/permission-checks.js'
import { RecordAccess, requireGranted } from './record-access.js'
import { RecordDeleter } from './record-deleter.js'
import { refuseChangedCopies } from '../../../src/service/input/sent-names.js'
import { ChangeSet } from './change-set.js'
import { keepHiddenMembers, refuseHiddenReferences } from '../../../src/service/access/unseen-references.js'
import { hasRules } from '../../../src/service/context/hooks.js'
import { RecordHooks } from '../../../src/service/write/run-hooks.js'
import type { ExpectedVersion } from '../../../src/service/input/versions.js'
import type { WriteContext } from '../../../src/service/context/context.js'
import { emptyLists, recordOf, referencesIn } from './written-record.js'

interface RecordWriterOptions {
  /** True if the request is about one record. By default, true if there is one root. */
  readonly isSingleRecord?: boolean
  /** Merges the roots with changes that were committed after the versions that they name. */
  readonly merges?: boolean
}

/** An update of one row, besides its values. */
interface UpdateTarget {
  readonly before: WireRecord
  readonly expected: ExpectedVersion
  /** The list that the record is written for. */
  readonly parent: ListOwner | undefined
  /** True if the request writes no other record. */
  readonly isAlone: boolean
}

export class RecordWriter {
  readonly #roots: Set<Draft>
  readonly #changeSet: ChangeSet
  readonly #access: RecordAccess
  readonly #deleter: RecordDeleter
  readonly #listWriter: OwnedListWriter
  readonly #hooks: RecordHooks

  constructor(
    readonly context: WriteContext,
    /** The drafts that the request names, without those inside them. A request that removes records has none. */
    roots: readonly Draft[] = [],
    private readonly options: RecordWriterOptions = {},
  ) {
    this.#roots = new Set(roots)
    this.#changeSet = new ChangeSet(context)
    this.#access = new RecordAccess(context)
    this.#hooks = new RecordHooks(context)
    this.#deleter = new RecordDeleter(context, this.#changeSet, this.#access, this.#hooks)
    this.#listWriter = new OwnedListWriter(context, this.#deleter, (draft, parent) =>
      this.#save(draft, parent),
    )
  }

  /** `restored` has the id and the system values of a deleted record that a revert creates again. */
  async create(draft: Draft, parent?: ListOwner, restored?: RestoredRecord): Promise<number> {
    const { app, principal, tx, now } = this.context
    const { model, path } = draft
    const table = app.tables.of(model)
    requirePermission(this.context.principal, 'create', model)
    const sent = { ...draft.values, ...(await this.#saveRelated(draft)), ...buildBackReference(parent) }
    const hooks = this.#hooks.find(model)
    if (hooks?.beforeSave)
      await hooks.beforeSave(this.#hooks.hookContext, { draft, values: sent, before: undefined })
    await lockReferences(this.context, draft, sent, { ownerField: getOwnerField(parent), self: restored?.id })
    await this.#changeSet.lockOwners(listOwners(app.catalog, model, [sent]))
    const numbered = { ...sent, ...(await assignNumbers(tx, model, restored?.numbers)) }
    const creation = restored?.creation ?? { createdOn: now, createdBy: toUserReference(principal.user) }
    const systemFields = { ...creation, updatedOn: null, updatedBy: null }
    const values = { ...numbered, ...computeValues(model, numbered, path), ...systemFields }
    const id = await inPlace(this.context.principal, draft, () => insertRow(tx, table, values, restored))
    const isPlain =
      !restored && this.#isOnlyWrite(draft) && referencesIn(model, sent).every((value) => value === null)
    const lists = isPlain ? emptyLists(model) : {}
    this.#changeSet.addCreated(
      table,
      id,
      isPlain ? recordOf(model, id, 0, { ...lists, ...values }) : undefined,
    )
    this.#changeSet.setFileChanges(table, id, diffFiles(table, new Map(), values))
    this.#access.addCreated(table, id, listSetFields(draft, sent, now), path)
    if (hooks?.afterSave)
      await hooks.afterSave(this.#hooks.hookContext, { model, id, before: undefined, changed: sent })
    await this.#listWriter.save(draft, id)
    return id
  }

  /** A root always gets a new version. A record inside it gets one only if a value changes. */
  async update(
    sentDraft: Draft,
    key: VersionedId,
    expected: ExpectedVersion,
    parent?: ListOwner,
  ): Promise<number> {
    const isRoot = this.#roots.has(sentDraft)
    const { app, tx } = this.context
    const { model, path } = sentDraft
    const table = app.tables.of(model)
    const isMerging = isRoot && this.#mayMerge(sentDraft)
    // The lock keeps others from adding members to a list that is replaced, and from changing a record that is being merged.
    const read = sentDraft.lists.size > 0 || isMerging ? store.readForUpdate : store.readById
    const stored = await read(tx, table, key.id)
    const record = stored && (await this.#deleter.addLostReferences(table, stored))
    const access = await this.#access.evaluate('update', table, key.id)
    const before = access.isVisible ? record : undefined
    if (!before) return isRoot ? throwNotFound(model, key.id) : throwNoSuchRecord(sentDraft, key.id)
    if (isRoot) requireGranted(access, table, key.id)
    this.#refuseSecondWrite(sentDraft, key.id)
    if (before.version !== key.version) {
      // Building the conflict reads the Log, which takes too long for a group commit.
      tx.requireExclusive()
      await refuseStaleWrite(this.context, { table, record: before, expected, draft: sentDraft }, isMerging)
    }
    if (isRoot) await refuseStaleInside(this.context, sentDraft)
    await refuseChangedCopies(this.context, sentDraft, before)
    await refuseHiddenReferences(this.context, sentDraft)
    await refuseChangedInverses(this.context, sentDraft, key.id)
    const patched = sentDraft.patched ? applyPatchToDraft(sentDraft, toValues(model, before)) : sentDraft
    const draft = await keepHiddenMembers(this.context, patched, before)
    const sent = { ...draft.values, ...(await this.#saveRelated(draft)), ...buildBackReference(parent) }
    const hooks = this.#hooks.find(model)
    if (hooks?.beforeSave) await hooks.beforeSave(this.#hooks.hookContext, { draft, values: sent, before })
    // A related record that was just saved may have had this record in a list.
    this.#refuseSecondWrite(draft, key.id)
    const changed = listChangedFields(draft, before, sent, access)
    if (sentDraft.isDuplicate && changed.length > 0)
      throw createFieldError(model, path, describeAmbiguousChange(`${model.name} ${key.id}`))
    if (isRoot || changed.length > 0) {
      this.#access.addUpdate(access, { table, id: key.id, names: changed, path })
      const isAlone = isRoot && this.#isOnlyWrite(sentDraft)
      await this.#updateRow(draft, sent, { before, expected, parent, isAlone })
    }
    await this.#listWriter.save(draft, key.id)
    return key.id
  }

  /** Runs before anything is written, so that a conflict contains only committed values. */
  async refuseStale(roots: readonly Draft[]): Promise<void> {
    for (const root of roots) await refuseStaleDraft(this.context, root, this.#mayMerge(root))
  }

  #mayMerge({ model }: Draft): boolean {
    return this.options.merges === true && !hasRules(this.context.app.hooks, model)
  }

  /** Creates or updates a root. */
  async save(draft: Draft): Promise<number> {
    this.#roots.add(draft)
    return this.#save(draft)
  }

  /** Returns the record if this transaction has already removed it. */
  findRemoved(model: Model, id: number): WireRecord | undefined {
    return this.#changeSet.findRemoved(model, id)
  }

  /** Returns false if the record no longer has this version. */
  async remove(table: Table, record: WireRecord, path = ''): Promise<boolean> {
    return this.#deleter.remove(table, record, path)
  }

  /**
   * Completes the Change of this record, so that a later request of the batch may write it again, with a version and a Change of its own.
   * Returns the completed records; these include the members of its owned lists if a later request may remove them.
   */
  async finishRecord(record: RecordIdentity, mayLoseParts: boolean): Promise<RecordIdentity[]> {
    const all = mayLoseParts ? [record, ...(await this.#deleter.collectParts(record))] : [record]
    const finished: RecordIdentity[] = []
    for (const { model, id } of all) {
      if (!this.#changeSet.isWritten(model, id)) continue
      await this.#access.checkRecord(model, id)
      await this.#changeSet.finishRecord(model, id)
      finished.push({ model, id })
    }
    return finished
  }

  /** Returns the Changes of all written records. Throws if another record still refers to a removed one. */
  async finish(): Promise<NewChange[]> {
    await this.#deleter.refuseIfReferenced()
    await this.#access.checkAll()
    return [...(await this.#changeSet.finish()), ...this.#hooks.addedChanges]
  }

  /** Checks the permission before the version, so that a conflict reveals nothing. */
  async requireRemovable(table: Table, id: number): Promise<void> {
    await this.#access.requireRemovable(table, id, false)
  }

  /** Returns the current record, without the names of list members. */
  async readRecord(model: Model, id: number): Promise<WireRecord> {
    return this.#changeSet.readRecord(model, id)
  }

  /** The UPDATE is guarded by the version, so it writes nothing if another transaction has changed the record after it was read. */
  async #updateRow(
    draft: Draft,
    sent: Values,
    { before, expected, parent, isAlone }: UpdateTarget,
  ): Promise<void> {
    const { app, principal, tx, now } = this.context
    const { model, path } = draft
    const table = app.tables.of(model)
    const { id, version } = before
    const old = toValues(model, before)
    const changed = Object.fromEntries(
      Object.entries(sent).filter(([name, value]) => !isSameValue(old[name] ?? null, value)),
    )
    await lockReferences(this.context, draft, changed, { ownerField: getOwnerField(parent) })
    const oldValues = pickFields(Object.keys(changed), old)
    await this.#changeSet.lockOwners(listOwners(app.catalog, model, [oldValues, changed]))
    const computed = computeValues(model, { ...old, ...sent }, path)
    const values = { ...sent, ...computed, updatedOn: now, updatedBy: toUserReference(principal.user) }
    const files = await findReplacedFiles(tx, table, id, sent)
    const [isDone] = await inPlace(this.context.principal, draft, () =>
      updateRows(tx, table, [{ id, version, values }]),
    )
    if (!isDone) {
      const theirs = (await store.readById(tx, table, id)) ?? throwNotFound(model, id)
      throw await createConflictError(this.context, { table, record: theirs, expected, draft })
    }
    const hooks = this.#hooks.find(model)
    if (hooks?.afterSave) await hooks.afterSave(this.#hooks.hookContext, { model, id, before, changed })
    await releaseFiles(this.context, files.values())
    const isPlain = isAlone && referencesIn(model, changed).length === 0
    // An unchanged reference stays as it was read, with the name of the related record.
    const written = {
      ...before,
      ...changed,
      ...computed,
      updatedOn: now,
      updatedBy: toUserReference(principal.user),
    }
    const after = isPlain ? recordOf(model, id, version + 1, written) : undefined
    this.#changeSet.addUpdated(table, before, after)
    this.#changeSet.setFileChanges(table, id, diffFiles(table, files, sent))
  }

  /** True if the request writes only this record. The answer then needs no further read. */
  #isOnlyWrite(draft: Draft): boolean {
    const { model, related, lists } = draft
    // A record that refers to itself has a new version there, and members may be sorted by values of this record.
    const isOwnKind = [...model.fields.values()].some(
      ({ relation }) => relation?.target === model.name || relation?.orderBy,
    )
    const isOnly = (this.options.isSingleRecord ?? this.#roots.size === 1) && this.#roots.has(draft)
    return isOnly && related.size === 0 && lists.size === 0 && !isOwnKind
  }

  async #save(draft: Draft, parent?: ListOwner): Promise<number> {
    const { key } = draft
    if (!key) return this.create(draft, parent)
    return this.update(draft, key, { version: key.version, source: 'version' }, parent)
  }

  /** Each record gets one version and one Change in a request, so a list cannot take in a record that the request writes elsewhere. */
  #refuseSecondWrite({ model, path }: Draft, id: number): void {
    const done = this.#changeSet.describeWrite(model, id)
    if (done === undefined) return
    throw createFieldError(
      model,
      path,
      `changes ${model.name} ${id}, which is ${done} in this request already`,
    )
  }

  async #saveRelated({ related }: Draft): Promise<Values> {
    const references: Values = {}
    for (const [name, relatedRecord] of related) references[name] = { id: await this.#save(relatedRecord) }
    return references
  }
}

function throwNoSuchRecord({ model, path }: Draft, id: number): never {
  throw createFieldError(model, path, `there is no ${model.name} ${id}`)
}
