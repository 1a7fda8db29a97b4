// Writes a draft: the record, the related records inside it, and the owners whose lists change. Runs only the stages that the plan of each draft
// names. An instance serves one attempt of a transaction.
import { type Draft, type VersionedId } from '../../model/write/draft.js'
import { createFieldError } from '../../model/definition/field-errors.js'
import type { Model } from '../../model/definition/model.js'
import { describeAmbiguousChange } from '../../model/write/repeated-references.js'
import type { Values } from '../../model/values/value.js'
import { buildRecord, toValues } from '../../model/definition/record-values.js'
import * as store from '../../store/records/records.js'
import type { WireRecord } from '../../wire.js'
import { listChangedFields, listSetFields, withSeenLists } from '../access/changed-fields.js'
import { createConflictError, refuseStaleDraft, refuseStaleInside, type KnownVersions } from './conflict.js'
import {
  assignNumbers,
  buildNewValues,
  buildUpdatedRecord,
  buildUpdateValues,
  computeVisibly,
  insertRow,
  listReferences,
  pickChangedValues,
  updateRow,
  type RestoredRecord,
} from './write-rows.js'
import { listOwners, lockReferences, refuseMissingReferences } from './lock-order.js'
import { diffFiles, findReplacedFiles, releaseFiles } from './held-files.js'
import {
  buildBackReference,
  changesRecord,
  changesValues,
  getOwnerField,
  OwnedListWriter,
  type ListOwner,
} from './owned-lists.js'
import { compareWithStored } from '../input/compare-draft.js'
import { pickFields } from './conflict-view.js'
import { requirePermission, type ExpectedVersion } from '../access/request-checks.js'
import { isCheckedBeforehand } from '../context/hooks.js'
import type { ModelHooks, WritePlan } from '../context/app.js'
import type { WriteContext } from '../context/context.js'
import { PlainListWriter, type ListErrorTranslator } from './plain-lists.js'
import { WriteState } from './write-state.js'

interface RecordWriterOptions {
  /** True if the request is about one record. By default, true if there is one root. */
  readonly isSingleRecord?: boolean
  /** Merges the roots with changes that were committed after the versions that they name. */
  readonly merges?: boolean
  /** The plan of the only root, if the caller has made it. */
  readonly plan?: WritePlan
  /** True if no record of the request shows another one. By default it is computed from the drafts that are written together. */
  readonly areIndependent?: boolean
  /** The state of a hook that writes. */
  readonly state?: WriteState
}

/** An update of one row, besides its values. */
interface RowUpdateContext {
  readonly plan: WritePlan
  readonly before: WireRecord
  /** The values before hooks ran. */
  readonly given: Values
  readonly expected: ExpectedVersion
  /** The list that the record is written for. */
  readonly parent: ListOwner | undefined
  /** True if the request writes no other record. */
  readonly isAlone: boolean
}

export class RecordWriter {
  readonly #roots: Set<Draft>
  readonly state: WriteState

  constructor(
    readonly context: WriteContext,
    /** The drafts that the request names, without those inside them. A request that removes records has none. */
    roots: readonly Draft[] = [],
    private readonly options: RecordWriterOptions = {},
  ) {
    this.#roots = new Set(roots)
    this.state = options.state ?? new WriteState(context)
  }

  /** `restored` has the id and the system values of a deleted record that a revert creates again. */
  async create(draft: Draft, parent?: ListOwner, restored?: RestoredRecord): Promise<number> {
    const { context } = this
    const { app, tx } = context
    const { model, path } = draft
    const table = app.tables.of(model)
    const plan = this.#planWrite(draft)
    requirePermission(context.principal, 'create', model)
    const named = isExtended(plan, parent) ? await this.#collectValues(draft, plan, parent) : draft.values
    // A restored record comes back as it was.
    const hooks = restored ? undefined : this.#findHooks(model, plan)
    const scope = { ownerField: getOwnerField(parent), self: restored?.id, given: named }
    if (hooks && plan.references) await refuseMissingReferences(context, draft, named, scope)
    const sent = hooks
      ? await this.state.hooks.runBeforeSave(hooks, { draft, values: named, before: undefined })
      : named
    if (plan.references || parent) {
      await lockReferences(context, draft, sent, scope)
      await this.state.changeSet.lockOwners(listOwners(app.catalog, model, [sent]))
    }
    const numbers = plan.sequences ? await assignNumbers(tx, model, restored?.numbers) : undefined
    const values = buildNewValues(context, draft, numbers ? Object.assign({}, sent, numbers) : sent)
    if (restored) Object.assign(values, restored.creation)
    const id = await insertRow(context, draft, values, restored)
    const hasReference =
      (plan.references || parent) && listReferences(model, sent).some((value) => value !== null)
    const isKnown = !restored && this.#isOnlyWrite(draft, plan) && !hasReference
    const after = isKnown ? buildRecord(model, id, 0, values) : undefined
    if (after && plan.isPlain) this.state.setOnlyWrite({ model, before: undefined, after })
    else this.state.addCreated(table, id, after)
    if (plan.files) this.state.changeSet.setFileChanges(table, id, diffFiles(table, new Map(), values))
    if (plan.permissions)
      this.state.access.addCreated(table, id, listSetFields(draft, named, context.now), path)
    if (plan.lists) await this.#saveLists(draft, id)
    if (hooks) await this.state.hooks.runAfterSave(hooks, { draft, id, before: undefined, changed: sent })
    return id
  }

  /** A root always gets a new version. A record inside it gets one only if a value changes. */
  async update(
    named: Draft,
    key: VersionedId,
    expected: ExpectedVersion,
    parent?: ListOwner,
  ): Promise<number> {
    const { context, state } = this
    const { model, path } = named
    const { id } = key
    const table = context.app.tables.of(model)
    const isRoot = this.#roots.has(named)
    const plan = this.#planWrite(named)
    const isAlone = isRoot && this.#isOnlyWrite(named, plan)
    const isMerging = plan.locks && isRoot && this.#mayMerge(named)
    const options = { plan, isRoot, isMerging, expected }
    const { draft: sent, before, base, access } = await state.readUpdateTarget(named, key, options)
    if (isRoot && (plan.related || plan.lists))
      await refuseStaleInside(context, sent, state.versionsBeforeHooks)
    const draft = plan.isPlain ? sent : await compareWithStored(context, plan, sent, before)
    const collected = isExtended(plan, parent) ? await this.#collectValues(draft, plan, parent) : draft.values
    const target = plan.related
      ? await state.refreshUpdateTarget(draft, { before, values: collected, access })
      : { before, values: collected }
    const modelHooks = this.#findHooks(model, plan)
    const isCompared = !isRoot || plan.permissions || modelHooks !== undefined || sent.isDuplicate === true
    const changed = isCompared
      ? listChangedFields(draft, withSeenLists(draft, target.before, base), target.values, access)
      : []
    if (sent.isDuplicate && changed.length > 0)
      throw createFieldError(model, path, describeAmbiguousChange(`${model.name} ${id}`))
    const isChanged =
      changed.length > 0 ||
      (modelHooks && (await changesRecord(context, draft, target.before, target.values)))
    const hooks = isChanged ? modelHooks : undefined
    if (hooks && plan.references) {
      const given = pickChangedValues(toValues(model, target.before), target.values)
      await refuseMissingReferences(context, draft, given, { ownerField: getOwnerField(parent) })
    }
    const values = hooks ? await state.hooks.runBeforeSave(hooks, { draft, ...target }) : target.values
    let changedValues: Values = {}
    const isSet = values !== target.values && changesValues(model, target.before, values)
    if (isRoot || changed.length > 0 || isSet) {
      if (plan.permissions) state.access.addUpdate(access, { table, id, names: changed, path })
      const update = { plan, before: target.before, given: target.values, expected, parent, isAlone }
      changedValues = await this.#updateRow(draft, values, update)
    }
    if (plan.lists) await this.#saveLists(draft, id, base)
    if (hooks)
      await state.hooks.runAfterSave(hooks, { draft, id, before: target.before, changed: changedValues })
    return id
  }

  /** Runs before anything is written, so that a conflict contains only committed values. */
  async refuseStale(roots: readonly Draft[], known?: KnownVersions): Promise<void> {
    for (const root of roots) await refuseStaleDraft(this.context, root, this.#mayMerge(root), known)
  }

  #mayMerge({ model }: Draft): boolean {
    return this.options.merges === true && !isCheckedBeforehand(this.context.app.hooks, model)
  }

  /** Creates or updates a root. */
  async save(draft: Draft): Promise<number> {
    this.#roots.add(draft)
    return this.#save(draft)
  }

  /** Creates or updates roots in their order. Consecutive plain records of one model are written together. */
  async saveAll(drafts: readonly Draft[], toError?: ListErrorTranslator): Promise<number[]> {
    for (const draft of drafts) this.#roots.add(draft)
    return this.#createListWriter(true).writeAll(drafts, toError)
  }

  /** Updates records that the request does not name. */
  async updateAll(drafts: readonly Draft[]): Promise<void> {
    await this.#createListWriter(false).writeAll(drafts)
  }

  #createListWriter(areRoots: boolean): PlainListWriter {
    return new PlainListWriter(this.context, this.state, {
      areRoots,
      areIndependent: this.options.areIndependent,
      plan: (draft) => this.#planWrite(draft),
      writeOne: (draft) => this.#save(draft),
    })
  }

  /**
   * The UPDATE is guarded by the version, so it writes nothing if another transaction has changed the record after it was read. Returns the
   * values that differ from the stored ones.
   */
  async #updateRow(
    draft: Draft,
    sent: Values,
    { plan, before, given, expected, parent, isAlone }: RowUpdateContext,
  ): Promise<Values> {
    const { context } = this
    const { app, tx } = context
    const { model } = draft
    const table = app.tables.of(model)
    const { id, version } = before
    const old = toValues(model, before)
    const changed = pickChangedValues(old, sent)
    if (plan.references || parent) {
      await lockReferences(context, draft, changed, { ownerField: getOwnerField(parent), given })
      const oldValues = pickFields(Object.keys(changed), old)
      await this.state.changeSet.lockOwners(listOwners(app.catalog, model, [oldValues, changed]))
    }
    // A record that the transaction has created has not been updated yet.
    const generated = this.state.isCreated(model, id)
      ? computeVisibly(context.principal, draft, old, sent)
      : buildUpdateValues(context, draft, old, sent)
    const files = plan.files ? await findReplacedFiles(tx, table, id, sent) : undefined
    const values = Object.assign({}, sent, generated)
    // Each record gets one version and one Change in a transaction, also if a hook writes it again.
    const isAgain = this.state.isWritten(model, id)
    if (!(await updateRow(context, draft, { id, version, values }, isAgain))) {
      const theirs = (await store.readById(tx, table, id)) ?? this.state.changeSet.throwMissing(model, id)
      throw await createConflictError(context, { table, record: theirs, expected, draft })
    }
    if (files) await releaseFiles(context, files.values())
    const hasReference = (plan.references || parent) && listReferences(model, changed).length > 0
    const after = isAlone && !hasReference ? buildUpdatedRecord(model, before, changed, generated) : undefined
    if (after && plan.isPlain) this.state.setOnlyWrite({ model, before, after })
    else this.state.addUpdated(table, before, after)
    if (files) this.state.changeSet.setFileChanges(table, id, diffFiles(table, files, sent))
    return changed
  }

  #planWrite(draft: Draft): WritePlan {
    const { plan, merges } = this.options
    if (plan && this.#roots.has(draft)) return plan
    return this.context.app.planWrite(this.context, draft, merges ? { merge: 'fields' } : {})
  }

  #findHooks(model: Model, plan: WritePlan): ModelHooks | undefined {
    return plan.hooks ? this.state.hooks.find(model) : undefined
  }

  /** True if the request writes only this record. Its state after the write is then known without a read. */
  #isOnlyWrite(draft: Draft, plan: WritePlan): boolean {
    const isOnly = (this.options.isSingleRecord ?? this.#roots.size === 1) && this.#roots.has(draft)
    return isOnly && !plan.readsBack
  }

  async #save(draft: Draft, parent?: ListOwner): Promise<number> {
    const { key } = draft
    if (!key) return this.create(draft, parent)
    return this.update(draft, key, { version: key.version, source: 'version' }, parent)
  }

  async #saveLists(draft: Draft, id: number, base?: WireRecord): Promise<void> {
    const { deleter, isNested, changeSet } = this.state
    const writer = new OwnedListWriter(this.context, {
      deleter,
      hooked: isNested ? undefined : changeSet,
      haveHooksWritten: () => this.state.haveHooksWritten,
      write: (each, parent) => this.#save(each, parent),
    })
    await writer.save(draft, id, base)
  }

  /** Returns the values of the draft with the references to related records, which it saves first. Hooks may change the copy. */
  async #collectValues(draft: Draft, plan: WritePlan, parent: ListOwner | undefined): Promise<Values> {
    const values = Object.assign({}, draft.values)
    if (plan.related)
      for (const [name, relatedRecord] of draft.related)
        values[name] = { id: await this.#save(relatedRecord) }
    return Object.assign(values, buildBackReference(parent))
  }
}

/** True if the write sets other values than those of the draft. */
function isExtended(plan: WritePlan, parent: ListOwner | undefined): boolean {
  return plan.related || plan.hooks || parent !== undefined
}
