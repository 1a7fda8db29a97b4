// Writing a Draft: the record, the neighbours inside of it, and the owners whose lists change by it. An instance lives as long as
// one attempt of a transaction.
import { listNestedDrafts, type Draft, type VersionedId } from '../../model/write/draft.js'
import { createFieldError, FieldErrors } from '../../model/definition/field-errors.js'
import { applyPatchToDraft } from '../../model/write/merge-patch.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { describeAmbiguousChange } from '../../model/write/repeated-references.js'
import { getReferenceId, isSameValue, type Values } from '../../model/values/value.js'
import { computeValues, toValues } from '../../model/definition/record-values.js'
import { insertWithIds } from '../../store/records/bulk.js'
import type { Transaction } from '../../store/engine/database.js'
import type { NewChange } from '../../store/log/log.js'
import { lockReferenced } from '../../store/records/references.js'
import * as store from '../../store/records/records.js'
import { takeNextNumber } from '../../store/records/sequences.js'
import type { Table } from '../../store/sql/table.js'
import type { WireRecord } from '../../wire.js'
import { toUserReference } from '../context/identity.js'
import { listChangedFields, listSetFields } from '../access/changed-fields.js'
import { createConflictError, refuseIfStale, refuseStaleWrite } from './conflict.js'
import { diffFiles, findReplacedFiles, releaseFiles } from './held-files.js'
import { throwNotFound } from '../context/ids.js'
import { inPlace } from './in-place.js'
import { refuseChangedInverses } from './sent-inverses.js'
import { buildBackReference, OwnedListWriter, type ListOwner } from './owned-lists.js'
import type { RecordIdentity } from './lock-order.js'
import { requirePermission } from '../access/permission-checks.js'
import { RecordAccess, requireGranted } from '../access/record-access.js'
import { RecordDeleter } from './record-deleter.js'
import { filterVisibleIds } from '../access/visible-records.js'
import { refuseChangedCopies } from './sent-names.js'
import { ChangeSet } from './change-set.js'
import { keepHiddenMembers, refuseHiddenReferences } from '../access/unseen-references.js'
import { hasRules } from '../context/hooks.js'
import { RecordHooks } from './run-hooks.js'
import type { ExpectedVersion } from './versions.js'
import type { WriteContext } from '../context/context.js'
import { emptyLists, recordOf, referencesIn } from '../access/written-record.js'

interface RecordWriterOptions {
  /** Whether the request is about one record and no other; as many as there are roots, if absent. */
  readonly isSingleRecord?: boolean
  /** Whether the records that the request is about may be written on top of what others wrote since the versions that they name. */
  readonly merges?: boolean
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
    /** The records that the request is about; none where they are removed. */
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

  /** `back` is what a record has already that was deleted and returns. */
  async create(draft: Draft, parent?: ListOwner, restored?: RestoredRecord): Promise<number> {
    const { app, principal, tx, now } = this.context
    const { model, path } = draft
    const table = app.tables.of(model)
    requirePermission(this.context.principal, 'create', model)
    const sent = { ...draft.values, ...(await this.#saveRelated(draft)), ...buildBackReference(parent) }
    const hooks = this.#hooks.find(model)
    if (hooks?.beforeSave)
      await hooks.beforeSave(this.#hooks.hookContext, { draft, values: sent, before: undefined })
    await this.#lockReferences(draft, sent, parent, restored?.id)
    await this.#lockOwners(model, sent)
    const numbered = { ...sent, ...(await this.#assignNumbers(model, restored?.numbers)) }
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

  /** The record that a request is about is raised always; one inside of it only if something changes. */
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
    // Where its lists are replaced, nobody may add a member meanwhile, even if the record itself stays as it is. And what is
    // written on top of a record must still be on top of it when it is written.
    const read = sentDraft.lists.size > 0 || isMerging ? store.readForUpdate : store.read
    const shown = await read(tx, table, key.id)
    const record = shown && (await this.#deleter.addLostReferences(table, shown))
    const access = await this.#access.evaluate('update', table, key.id)
    const before = access.isVisible ? record : undefined
    if (!before) return isRoot ? throwNotFound(model, key.id) : throwNoSuchRecord(sentDraft, key.id)
    if (isRoot) requireGranted(access, table, key.id)
    this.#refuseSecondWrite(sentDraft, key.id)
    if (before.version !== key.version) {
      // What is told of it takes the whole Log, and time.
      tx.group?.requireExclusive()
      await refuseStaleWrite(this.context, { table, record: before, expected, draft: sentDraft }, isMerging)
    }
    if (isRoot) await this.refuseStaleInside(sentDraft)
    await refuseChangedCopies(this.context, sentDraft, before)
    await refuseHiddenReferences(this.context, sentDraft)
    await refuseChangedInverses(this.context, sentDraft, key.id)
    const patched = sentDraft.patched ? applyPatchToDraft(sentDraft, toValues(model, before)) : sentDraft
    const draft = await keepHiddenMembers(this.context, patched, before)
    const sent = { ...draft.values, ...(await this.#saveRelated(draft)), ...buildBackReference(parent) }
    const hooks = this.#hooks.find(model)
    if (hooks?.beforeSave) await hooks.beforeSave(this.#hooks.hookContext, { draft, values: sent, before })
    // One of its neighbours may have had it in a list.
    this.#refuseSecondWrite(draft, key.id)
    const changed = listChangedFields(draft, before, sent, access)
    if (sentDraft.isDuplicate && changed.length > 0)
      throw createFieldError(model, path, describeAmbiguousChange(`${model.name} ${key.id}`))
    const isUpdated = isRoot || changed.length > 0
    if (isUpdated) {
      this.#access.addUpdate(table, key.id, access, changed, path)
      await this.#updateRow(
        draft,
        table,
        before,
        sent,
        expected,
        parent,
        isRoot && this.#isOnlyWrite(sentDraft),
      )
    }
    await this.#listWriter.save(draft, key.id)
    return key.id
  }

  /** Before anything is written: so that a conflict shows only what is committed. */
  async refuseStale(roots: readonly Draft[]): Promise<void> {
    for (const root of roots) await this.#refuseStale(root, this.#mayMerge(root))
  }

  /** Those inside of it are never merged. */
  async refuseStaleInside(draft: Draft): Promise<void> {
    for (const inner of listNestedDrafts(draft)) await this.#refuseStale(inner, false)
  }

  async #refuseStale(draft: Draft, mayMerge: boolean): Promise<void> {
    const { model, key } = draft
    if (key) {
      const expected = { version: key.version, source: 'version' } as const
      const table = this.context.app.tables.of(model)
      await refuseIfStale(this.context, table, key.id, { expected, draft, mayMerge })
    }
    await this.refuseStaleInside(draft)
  }

  #mayMerge({ model }: Draft): boolean {
    return this.options.merges === true && !hasRules(this.context.app.hooks, model)
  }

  /** What the request is about: a new record, or one that is changed from the version it names. */
  async save(draft: Draft): Promise<number> {
    this.#roots.add(draft)
    return this.#save(draft)
  }

  /** What a record was that is removed already. */
  findRemoved(model: Model, id: number): WireRecord | undefined {
    return this.#changeSet.findRemoved(model, id)
  }

  /** False if the record is no longer at this version. */
  async remove(table: Table, record: WireRecord, path = ''): Promise<boolean> {
    return this.#deleter.remove(table, record, path)
  }

  /**
   * What was written of this record is done with: it may be written once more, and that is another version with a Change of its own.
   * Answers what this holds for, the parts of the record among them if they may go by what follows.
   */
  async finishRecord(record: RecordIdentity, mayLoseParts: boolean): Promise<RecordIdentity[]> {
    const all = mayLoseParts ? [record, ...(await this.#deleter.collectParts(record))] : [record]
    const finished: RecordIdentity[] = []
    for (const { model, id } of all) {
      if (this.#changeSet.findWriteStatus(model, id) === undefined) continue
      await this.#access.checkRecord(model, id)
      await this.#changeSet.finishRecord(model, id)
      finished.push({ model, id })
    }
    return finished
  }

  /** The Changes of all that was written, unless something that is gone is still referred to. */
  async finish(): Promise<NewChange[]> {
    await this.#deleter.refuseIfReferenced()
    await this.#access.checkAll()
    return [...(await this.#changeSet.finish()), ...this.#hooks.addedChanges]
  }

  /** Before it is removed, and before anything is said of its version. */
  async requireRemovable(table: Table, id: number): Promise<void> {
    await this.#access.requireRemovable(table, id, false)
  }

  /** The record as it is now, without the names of list members. */
  async readRecord(model: Model, id: number): Promise<WireRecord> {
    return this.#changeSet.readRecord(model, id)
  }

  /** One guarded statement decides: whatever was read before, only a record that is still at its version is written. */
  async #updateRow(
    draft: Draft,
    table: Table,
    before: WireRecord,
    sent: Values,
    expected: ExpectedVersion,
    parent: ListOwner | undefined,
    isAlone: boolean,
  ): Promise<void> {
    const { principal, tx, now } = this.context
    const { model, path } = draft
    const { id, version } = before
    const old = toValues(model, before)
    const changed = Object.fromEntries(
      Object.entries(sent).filter(([name, value]) => !isSameValue(old[name] ?? null, value)),
    )
    await this.#lockReferences(draft, changed, parent)
    await this.#lockOwners(model, pickValues(old, Object.keys(changed)), changed)
    const computed = computeValues(model, { ...old, ...sent }, path)
    const values = { ...sent, ...computed, updatedOn: now, updatedBy: toUserReference(principal.user) }
    const files = await findReplacedFiles(tx, table, id, sent)
    const [isDone] = await inPlace(this.context.principal, draft, () =>
      store.update(tx, table, [{ id, version, values }]),
    )
    if (!isDone) {
      const theirs = (await store.read(tx, table, id)) ?? throwNotFound(model, id)
      throw await createConflictError(this.context, { table, record: theirs, expected, draft })
    }
    const hooks = this.#hooks.find(model)
    if (hooks?.afterSave) await hooks.afterSave(this.#hooks.hookContext, { model, id, before, changed })
    await releaseFiles(this.context, files.values())
    const isPlain = isAlone && referencesIn(model, changed).length === 0
    // What was sent and is there already stays as it was read: a reference with the name of its neighbour.
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

  /** Whether nothing but this record is written: then nothing of it has to be looked up again. */
  #isOnlyWrite(draft: Draft): boolean {
    const { model, related, lists } = draft
    // A record may be its own neighbour, which then has a new version, and its members may be ordered by what it holds.
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

  /** A list may take in, by its id alone, what is written elsewhere in the request: each record gets one version and one Change. */
  #refuseSecondWrite({ model, path }: Draft, id: number): void {
    const done = this.#changeSet.findWriteStatus(model, id)
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

  /** What is referred to is there, and stays until the transaction ends. */
  async #lockReferences(
    draft: Draft,
    values: Values,
    parent: ListOwner | undefined,
    self?: number,
  ): Promise<void> {
    const { model, path, related } = draft
    const { app, tx } = this.context
    const errors = new FieldErrors()
    for (const [name, value] of Object.entries(values)) {
      const field = model.fields.get(name)
      // A neighbour that was made here is known to nobody else; one that came along unchanged was only read.
      const isMade = related.has(name) && !related.get(name)?.key
      const isHeld = isMade || name === parent?.list.field.relation?.mappedBy
      if (value === null || isHeld || !field?.relation || !isReference(field)) continue
      const target = app.catalog.getTarget(field.relation)
      if (target === model && getReferenceId(value) === self) continue
      const there = await lockReferenced(tx, app.tables.of(target), [getReferenceId(value)])
      const seen = await filterVisibleIds(this.context, target, [...there])
      if (seen.size === 0) errors.add(path + name, `there is no ${target.name} ${getReferenceId(value)}`)
    }
    errors.refuseIfAny(model)
  }

  /** Those whose lists the record leaves or joins by its references. */
  async #lockOwners(model: Model, ...states: readonly Values[]): Promise<void> {
    const owners = states.flatMap((values) =>
      Object.entries(values).flatMap(([name, value]) => {
        const field = model.fields.get(name)
        const list = value !== null && field && this.context.app.catalog.findOwner(model, field)
        return list ? [{ model: list.model, id: getReferenceId(value) }] : []
      }),
    )
    await this.#changeSet.lockOwners(owners)
  }

  async #assignNumbers(model: Model, given: Values = {}): Promise<Values> {
    const numbers: Values = {}
    for (const field of model.fields.values()) {
      if (field.sequence)
        numbers[field.name] = given[field.name] ?? (await takeNextNumber(this.context.tx, model, field))
    }
    return numbers
  }
}

/** A record that was deleted: it returns under its id, with the next version. */
export interface RestoredRecord {
  readonly id: number
  readonly version: number
  /** When it was made, and by whom. */
  readonly creation: Values
  /** What its sequences gave it. */
  readonly numbers: Values
}

async function insertRow(
  tx: Transaction,
  table: Table,
  values: Values,
  restored?: RestoredRecord,
): Promise<number> {
  if (restored) await insertWithIds(tx, table, [{ id: restored.id, version: restored.version, values }])
  return restored ? restored.id : ((await store.insert(tx, table, [values]))[0] ?? 0)
}

function pickValues(values: Values, names: readonly string[]): Values {
  return Object.fromEntries(names.map((name) => [name, values[name] ?? null]))
}

function throwNoSuchRecord({ model, path }: Draft, id: number): never {
  throw createFieldError(model, path, `there is no ${model.name} ${id}`)
}
