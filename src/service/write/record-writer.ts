// Writing a Draft: the record, the neighbours inside of it, and the owners whose lists change by it. An instance lives as long as
// one attempt of a transaction.
import { listNestedDrafts, type Draft, type VersionedId } from '../../model/write/draft.js'
import { createFieldError, FieldErrors } from '../../model/definition/field-errors.js'
import { applyPatchToDraft } from '../../model/write/merge-patch.js'
import { isReference, type Model } from '../../model/definition/model.js'
import { describeAmbiguousChange } from '../../model/write/repeated-references.js'
import { isServiceModel } from '../../model/catalog/system-models.js'
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
import { userOf } from '../context/identity.js'
import { namesChanged, namesSet } from '../access/changed-fields.js'
import { conflict, refuseIfStale, refuseStale } from './conflict.js'
import { fileChanges, filesToReplace, letGo } from './held-files.js'
import { missing } from '../context/ids.js'
import { inPlace } from './in-place.js'
import { refuseChangedInverses } from './sent-inverses.js'
import { refuseStrangeKey } from '../auth/key-rules.js'
import { backReference, Lists, type Parent } from './owned-lists.js'
import type { Identity } from './lock-order.js'
import { requirePermitted } from '../access/permission-checks.js'
import { Permits, requireGranted } from '../access/record-access.js'
import { Removing } from './record-deleter.js'
import { seenAmong } from '../access/visible-records.js'
import { refuseChangedCopies } from './sent-names.js'
import { Touched } from './change-set.js'
import { keepUnseen, refuseUnseen } from '../access/unseen-references.js'
import { endSessionsIfChanged } from '../auth/user-sessions.js'
import type { Expected } from './versions.js'
import type { Work } from '../context/context.js'
import { emptyLists, recordOf, referencesIn } from '../access/written-record.js'

interface HowSaved {
  /** Whether the request is about one record and no other; as many as there are roots, if absent. */
  readonly isOfOne?: boolean
  /** Whether the records that the request is about may be written on top of what others wrote since the versions that they name. */
  readonly merges?: boolean
}

export class Saving {
  readonly #roots: Set<Draft>
  readonly #touched: Touched
  readonly #permits: Permits
  readonly #removing: Removing
  readonly #lists: Lists
  readonly #events: NewChange[] = []

  constructor(
    private readonly work: Work,
    /** The records that the request is about; none where they are removed. */
    roots: readonly Draft[] = [],
    private readonly how: HowSaved = {},
  ) {
    this.#roots = new Set(roots)
    this.#touched = new Touched(work)
    this.#permits = new Permits(work)
    this.#removing = new Removing(work, this.#touched, this.#permits)
    this.#lists = new Lists(work, this.#removing, (draft, parent) => this.#save(draft, parent))
  }

  /** `back` is what a record has already that was deleted and returns. */
  async create(draft: Draft, parent?: Parent, back?: Return): Promise<number> {
    const { app, actor, tx, now } = this.work
    const { model, path } = draft
    const table = app.tables.of(model)
    requirePermitted(this.work, 'create', model)
    const sent = { ...draft.values, ...(await this.#saveNeighbours(draft)), ...backReference(parent) }
    refuseStrangeKey(draft, sent, now)
    await this.#holdReferences(draft, sent, parent, back?.id)
    await this.#lockOwners(model, sent)
    const numbered = { ...sent, ...(await this.#numbersFor(model, back?.numbers)) }
    const made = back?.made ?? { createdOn: now, createdBy: userOf(actor) }
    const kept = { ...made, updatedOn: null, updatedBy: null }
    const values = { ...numbered, ...computeValues(model, numbered, path), ...kept }
    const id = await inPlace(this.work, draft, () => insertRecord(tx, table, values, back))
    const isPlain =
      !back && this.#isAlone(draft) && referencesIn(model, sent).every((value) => value === null)
    const lists = isPlain ? emptyLists(model) : {}
    this.#touched.made(table, id, isPlain ? recordOf(model, id, 0, { ...lists, ...values }) : undefined)
    this.#touched.changedFiles(table, id, fileChanges(table, new Map(), values))
    this.#permits.made(table, id, namesSet(draft, sent, now), path)
    await this.#lists.save(draft, id)
    return id
  }

  /** The record that a request is about is raised always; one inside of it only if something changes. */
  async update(asked: Draft, key: VersionedId, expected: Expected, parent?: Parent): Promise<number> {
    const isRoot = this.#roots.has(asked)
    const { app, tx, now } = this.work
    const { model, path } = asked
    const table = app.tables.of(model)
    const isMerging = isRoot && this.#mayMerge(asked)
    // Where its lists are replaced, nobody may add a member meanwhile, even if the record itself stays as it is. And what is
    // written on top of a record must still be on top of it when it is written.
    const read = asked.lists.size > 0 || isMerging ? store.readForUpdate : store.read
    const shown = await read(tx, table, key.id)
    const record = shown && (await this.#removing.withReferences(table, shown))
    const permit = await this.#permits.of('update', table, key.id)
    const before = permit.isSeen ? record : undefined
    if (!before) return isRoot ? missing(model, key.id) : gone(asked, key.id)
    if (isRoot) requireGranted(permit, table, key.id)
    this.#refuseSecond(asked, key.id)
    if (before.version !== key.version) {
      // What is told of it takes the whole Log, and time.
      tx.group?.requireExclusive()
      await refuseStale(this.work, tx, table, before, expected, asked, isMerging)
    }
    if (isRoot) await this.refuseStaleInside(asked)
    await refuseChangedCopies(this.work, asked, before)
    await refuseUnseen(this.work, asked)
    await refuseChangedInverses(this.work, asked, key.id)
    const patched = asked.patched ? applyPatchToDraft(asked, toValues(model, before)) : asked
    const draft = await keepUnseen(this.work, patched, before)
    const sent = { ...draft.values, ...(await this.#saveNeighbours(draft)), ...backReference(parent) }
    refuseStrangeKey(draft, sent, now, before)
    // One of its neighbours may have had it in a list.
    this.#refuseSecond(draft, key.id)
    const changed = namesChanged(draft, before, sent, permit)
    if (asked.isDuplicate && changed.length > 0)
      throw createFieldError(model, path, describeAmbiguousChange(`${model.name} ${key.id}`))
    const isRaised = isRoot || changed.length > 0
    if (isRaised) {
      this.#permits.changing(table, key.id, permit, changed, path)
      await this.#raise(draft, table, before, sent, expected, parent, isRoot && this.#isAlone(asked))
    }
    await this.#lists.save(draft, key.id)
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
    const { app, tx } = this.work
    if (key) {
      const expected = { version: key.version, by: 'version' } as const
      await refuseIfStale(this.work, tx, app.tables.of(model), key.id, expected, draft, mayMerge)
    }
    await this.refuseStaleInside(draft)
  }

  /** The rules of users, roles and permissions look at a whole record before it is written: there every version is the one they looked at. */
  #mayMerge({ model }: Draft): boolean {
    return this.how.merges === true && !isServiceModel(model)
  }

  /** What the request is about: a new record, or one that is changed from the version it names. */
  async save(draft: Draft): Promise<number> {
    this.#roots.add(draft)
    return this.#save(draft)
  }

  /** What a record was that is removed already. */
  goneFrom(model: Model, id: number): WireRecord | undefined {
    return this.#touched.goneFrom(model, id)
  }

  /** False if the record is no longer at this version. */
  async remove(table: Table, record: WireRecord, place = ''): Promise<boolean> {
    return this.#removing.remove(table, record, place)
  }

  /**
   * What was written of this record is done with: it may be written once more, and that is another version with a Change of its own.
   * Answers what this holds for, the parts of the record among them if they may go by what follows.
   */
  async settle(record: Identity, mayLoseParts: boolean): Promise<Identity[]> {
    const all = mayLoseParts ? [record, ...(await this.#removing.allPartsOf(record))] : [record]
    const settled: Identity[] = []
    for (const { model, id } of all) {
      if (this.#touched.doneTo(model, id) === undefined) continue
      await this.#permits.settle(model, id)
      await this.#touched.settle(model, id)
      settled.push({ model, id })
    }
    return settled
  }

  /** The Changes of all that was written, unless something that is gone is still referred to. */
  async finish(): Promise<NewChange[]> {
    await this.#removing.refuseIfReferenced()
    await this.#permits.finish()
    return [...(await this.#touched.finish()), ...this.#events]
  }

  /** Before it is removed, and before anything is said of its version. */
  async requireRemovable(table: Table, id: number): Promise<void> {
    await this.#permits.requireRemovable(table, id, false)
  }

  /** The record as it is now, without the names of list members. */
  async recordOf(model: Model, id: number): Promise<WireRecord> {
    return this.#touched.recordOf(model, id)
  }

  /** One guarded statement decides: whatever was read before, only a record that is still at its version is written. */
  async #raise(
    draft: Draft,
    table: Table,
    before: WireRecord,
    sent: Values,
    expected: Expected,
    parent: Parent | undefined,
    isAlone: boolean,
  ): Promise<void> {
    const { actor, tx, now } = this.work
    const { model, path } = draft
    const { id, version } = before
    const old = toValues(model, before)
    const changed = Object.fromEntries(
      Object.entries(sent).filter(([name, value]) => !isSameValue(old[name] ?? null, value)),
    )
    await this.#holdReferences(draft, changed, parent)
    await this.#lockOwners(model, pick(old, Object.keys(changed)), changed)
    const computed = computeValues(model, { ...old, ...sent }, path)
    const values = { ...sent, ...computed, updatedOn: now, updatedBy: userOf(actor) }
    const files = await filesToReplace(tx, table, id, sent)
    const [isDone] = await inPlace(this.work, draft, () => store.update(tx, table, [{ id, version, values }]))
    if (!isDone) {
      const theirs = (await store.read(tx, table, id)) ?? missing(model, id)
      throw await conflict(this.work, tx, table, theirs, expected, draft)
    }
    this.#events.push(...(await endSessionsIfChanged(this.work, model, id, changed)))
    await letGo(this.work, files.values())
    const isPlain = isAlone && referencesIn(model, changed).length === 0
    // What was sent and is there already stays as it was read: a reference with the name of its neighbour.
    const written = { ...before, ...changed, ...computed, updatedOn: now, updatedBy: userOf(actor) }
    const after = isPlain ? recordOf(model, id, version + 1, written) : undefined
    this.#touched.raised(table, before, after)
    this.#touched.changedFiles(table, id, fileChanges(table, files, sent))
  }

  /** Whether nothing but this record is written: then nothing of it has to be looked up again. */
  #isAlone(draft: Draft): boolean {
    const { model, related, lists } = draft
    // A record may be its own neighbour, which then has a new version, and its members may be ordered by what it holds.
    const isOwnKind = [...model.fields.values()].some(
      ({ relation }) => relation?.target === model.name || relation?.orderBy,
    )
    const isOnly = (this.how.isOfOne ?? this.#roots.size === 1) && this.#roots.has(draft)
    return isOnly && related.size === 0 && lists.size === 0 && !isOwnKind
  }

  async #save(draft: Draft, parent?: Parent): Promise<number> {
    const { key } = draft
    if (!key) return this.create(draft, parent)
    return this.update(draft, key, { version: key.version, by: 'version' }, parent)
  }

  /** A list may take in, by its id alone, what is written elsewhere in the request: each record gets one version and one Change. */
  #refuseSecond({ model, path }: Draft, id: number): void {
    const done = this.#touched.doneTo(model, id)
    if (done === undefined) return
    throw createFieldError(
      model,
      path,
      `changes ${model.name} ${id}, which is ${done} in this request already`,
    )
  }

  async #saveNeighbours({ related }: Draft): Promise<Values> {
    const references: Values = {}
    for (const [name, neighbour] of related) references[name] = { id: await this.#save(neighbour) }
    return references
  }

  /** What is referred to is there, and stays until the transaction ends. */
  async #holdReferences(
    draft: Draft,
    values: Values,
    parent: Parent | undefined,
    self?: number,
  ): Promise<void> {
    const { model, path, related } = draft
    const { app, tx } = this.work
    const faults = new FieldErrors()
    for (const [name, value] of Object.entries(values)) {
      const field = model.fields.get(name)
      // A neighbour that was made here is known to nobody else; one that came along unchanged was only read.
      const isMade = related.has(name) && !related.get(name)?.key
      const isHeld = isMade || name === parent?.list.field.relation?.mappedBy
      if (value === null || isHeld || !field?.relation || !isReference(field)) continue
      const target = app.catalog.getTarget(field.relation)
      if (target === model && getReferenceId(value) === self) continue
      const there = await lockReferenced(tx, app.tables.of(target), [getReferenceId(value)])
      const seen = await seenAmong(app, this.work, tx, target, [...there])
      if (seen.size === 0) faults.add(path + name, `there is no ${target.name} ${getReferenceId(value)}`)
    }
    faults.refuseIfAny(model)
  }

  /** Those whose lists the record leaves or joins by its references. */
  async #lockOwners(model: Model, ...states: readonly Values[]): Promise<void> {
    const owners = states.flatMap((values) =>
      Object.entries(values).flatMap(([name, value]) => {
        const field = model.fields.get(name)
        const list = value !== null && field && this.work.app.catalog.findOwner(model, field)
        return list ? [{ model: list.model, id: getReferenceId(value) }] : []
      }),
    )
    await this.#touched.lockOwners(owners)
  }

  async #numbersFor(model: Model, given: Values = {}): Promise<Values> {
    const numbers: Values = {}
    for (const field of model.fields.values()) {
      if (field.sequence)
        numbers[field.name] = given[field.name] ?? (await takeNextNumber(this.work.tx, model, field))
    }
    return numbers
  }
}

/** A record that was deleted: it returns under its id, with the next version. */
export interface Return {
  readonly id: number
  readonly version: number
  /** When it was made, and by whom. */
  readonly made: Values
  /** What its sequences gave it. */
  readonly numbers: Values
}

async function insertRecord(tx: Transaction, table: Table, values: Values, back?: Return): Promise<number> {
  if (back) await insertWithIds(tx, table, [{ id: back.id, version: back.version, values }])
  return back ? back.id : ((await store.insert(tx, table, [values]))[0] ?? 0)
}

function pick(values: Values, names: readonly string[]): Values {
  return Object.fromEntries(names.map((name) => [name, values[name] ?? null]))
}

function gone({ model, path }: Draft, id: number): never {
  throw createFieldError(model, path, `there is no ${model.name} ${id}`)
}
