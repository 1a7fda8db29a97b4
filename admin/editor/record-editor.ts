// A form of one record: reads it, follows it, saves it, and merges what others save meanwhile. One save at a time.
import {
  ConflictError,
  InvalidError,
  NotFoundError,
  RequestError,
  UnauthenticatedError,
  type Change,
} from 'verso-records/client'
import { subscribeToChanges, subscribeToGaps } from '../service/live.js'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { Observable } from '../service/observable.js'
import { client, waitForSession } from '../service/session.js'
import { DraftKeeper, type FoundDraft } from './drafts.js'
import {
  createEditorState,
  listEditableFields,
  rebase,
  receiveAnswer,
  receiveRecord,
  setFieldValue,
  type EditorState,
} from './editor-state.js'
import { applyChoice, listTheirFields, mergeRecords, type Clash } from './merge.js'
import { readRecord } from './read-record.js'
import { isSameValue, listChangedFields, listIds, type RecordValues } from './record-values.js'
import { findInvalidInputs, RecordSaver } from './record-saver.js'

/** What a save has done, for the message after it. */
export interface SaveReport {
  readonly record: RecordValues
  readonly isNew: boolean
  /** The version before the save. */
  readonly from: number
  /** The version that the save has made. */
  readonly to: number
  /** The version that the form was filled with. */
  readonly since: number
  /** Fields that others have changed meanwhile, now part of the record. */
  readonly merged: readonly FieldInfo[]
}

/** Others may save between our read and our next attempt. */
const MAX_ATTEMPTS = 10
const REFRESH_MS = 150

export class RecordEditor {
  readonly state: Observable<EditorState>
  readonly fields: readonly FieldInfo[]
  readonly #saver: RecordSaver
  readonly #drafts: DraftKeeper
  readonly #stops: (() => void)[] = []
  #isSaving = false
  #isDraftKept = true
  #isQueued = false
  #refreshTimer: ReturnType<typeof setTimeout> | undefined
  #authors: Record<string, { by: Change['by']; on: string }> = {}
  /** Sent with a save that has got no answer: the service may have stored it. */
  #unanswered: RecordValues | undefined

  constructor(
    readonly model: ModelInfo,
    readonly id: number | undefined,
    record: RecordValues,
    private readonly onSaved: (report: SaveReport) => void,
  ) {
    this.fields = listEditableFields(model)
    this.state = new Observable(createEditorState(record))
    this.#saver = new RecordSaver(model, this.fields)
    this.#drafts = new DraftKeeper(model.name, id ?? 'new', this.fields)
    const keep = () => {
      this.#isDraftKept = this.#drafts.keep(this.state.value)
    }
    this.#stops.push(this.state.subscribe(keep), () => this.#drafts.stop())
  }

  /** Puts a draft into the form, with the record that it was based on. Saving it goes through the merge. */
  restore(draft: FoundDraft): void {
    const known = new Set(this.fields.map(({ name }) => name))
    const values = Object.fromEntries(Object.entries(draft.values).filter(([name]) => known.has(name)))
    const { value } = this.state
    const latest = value.latest
    const restored = {
      ...value,
      base: draft.base,
      values: { ...draft.base, ...values },
      draftOf: draft.savedOn,
    }
    this.state.set(receiveRecord(this.fields, restored, { record: latest, authors: {}, focused: 'none' }))
    draft.forget()
  }

  /** Follows the record until `stop`. */
  start(): void {
    if (this.id === undefined) return
    this.#stops.push(
      subscribeToChanges((changes) => this.#notice(changes)),
      subscribeToGaps(() => this.#refreshSoon()),
    )
  }

  stop(): void {
    clearTimeout(this.#refreshTimer)
    for (const stop of this.#stops.splice(0)) stop()
  }

  get isDirty(): boolean {
    const { values, base } = this.state.value
    return listChangedFields(this.fields, values, base).length > 0
  }

  /** False if the browser refuses to store drafts. */
  get isDraftKept(): boolean {
    return this.#isDraftKept
  }

  setValue(name: string, value: unknown): void {
    this.state.set(setFieldValue(this.state.value, name, value))
    if (!this.isDirty) this.#receive(this.state.value.latest)
  }

  /** Gives up what was typed, and shows the newest record. Returns the draft, so that it can be brought back. */
  discard(): FoundDraft {
    const { base, values, latest } = this.state.value
    this.state.set({ ...createEditorState(latest), deletion: this.state.value.deletion })
    this.#drafts.remove()
    return { base, values, savedOn: new Date().toISOString(), forget: () => undefined }
  }

  /** Saves what was typed. A save during a save waits for it, and sends only what is still unsaved. */
  async save(): Promise<void> {
    if (this.#isSaving) {
      this.#isQueued = true
      return
    }
    this.#isSaving = true
    try {
      for (let isWanted = true; isWanted; isWanted = this.#mustSaveAgain()) await this.#saveOnce()
    } finally {
      this.#isSaving = false
    }
  }

  #mustSaveAgain(): boolean {
    const { status, conflict } = this.state.value
    const isQueued = this.#isQueued
    this.#isQueued = false
    return isQueued && this.isDirty && status !== 'failed' && !conflict
  }

  /** Saves with the values that the person has chosen for each clash. */
  async resolve(choices: ReadonlyMap<Clash, unknown>): Promise<void> {
    const { conflict, values } = this.state.value
    if (!conflict) return
    const chosen = [...choices].reduce(
      (all, [clash, value]) => applyChoice(all, clash, value),
      conflict.merged,
    )
    const rebased = rebase(this.fields, this.state.value, values, { record: conflict.theirs, values: chosen })
    this.state.set({ ...rebased, lost: { ...rebased.lost, ...listLost(choices) } })
    await this.save()
  }

  /** Goes back to the form. The next save shows the conflict again. */
  postpone(): void {
    this.state.set({ ...this.state.value, conflict: undefined, status: 'idle' })
  }

  async refresh(): Promise<void> {
    const { id } = this
    if (id === undefined) return
    try {
      this.#receive(await readRecord(this.model, id))
    } catch (error) {
      if (error instanceof NotFoundError) await this.#noticeDeletion(id)
      else if (!(error instanceof RequestError)) throw error
    }
  }

  async #saveOnce(): Promise<void> {
    const start = this.state.value
    if (this.id !== undefined && !this.isDirty) {
      this.state.set({ ...start, status: 'saved', errors: {}, failure: '' })
      return
    }
    const errors = findInvalidInputs(this.fields, start.values)
    if (Object.keys(errors).length > 0) {
      this.state.set({ ...start, status: 'failed', errors, failure: '' })
      return
    }
    this.state.set({ ...start, status: 'saving', errors: {}, failure: '' })
    try {
      await this.#sendUntilMerged(start.base)
    } catch (error) {
      await this.#takeFailure(error)
    }
  }

  async #sendUntilMerged(first: RecordValues): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const { base, values } = this.state.value
      try {
        const { record, from, to } = await this.#saver.save(this.id, values, base)
        this.#unanswered = undefined
        const isNew = this.id === undefined
        const sides = { base: first, ours: values, theirs: record }
        const merged = isNew ? [] : listTheirFields(this.fields, sides)
        this.state.set(receiveAnswer(this.fields, this.state.value, values, record))
        this.onSaved({ record, isNew, from, to, merged, since: Number(first['version'] ?? -1) })
        return
      } catch (error) {
        if (error instanceof UnauthenticatedError) await waitForSession()
        else if (error instanceof ConflictError && this.id !== undefined && attempt < MAX_ATTEMPTS) {
          if (await this.#merge(this.id, error, values)) return
        } else {
          if (error instanceof RequestError && error.status === 0) this.#unanswered = values
          throw error
        }
      }
    }
  }

  /** Merges with the record as it is now. Returns true if the person has to decide. */
  async #merge(id: number, error: ConflictError, sent: RecordValues): Promise<boolean> {
    const theirs = await readRecord(this.model, id)
    const state = this.state.value
    const isOfRecord = error.data['entityName'] === this.model.name && error.data['entityId'] === id
    const groups = isOfRecord
      ? Object.entries(error.fields).flatMap(([name, { verdict }]) => (verdict === 'clash' ? [name] : []))
      : []
    const base = this.#adoptUnanswered(state.base, theirs)
    const forced = new Set(groups.filter((name) => base[name] === state.base[name]))
    const files = this.fields.filter(({ kind, name }) => kind === 'file' && forced.has(name))
    const described = Object.fromEntries(files.map(({ name }) => [name, error.fields[name]?.theirs]))
    const sides = { base, ours: sent, theirs: { ...theirs, ...described } }
    const { values, clashes } = mergeRecords(this.fields, sides, forced)
    if (clashes.length === 0) {
      this.state.set(rebase(this.fields, state, sent, { record: theirs, values }))
      return false
    }
    const { changedBy, changedOn } = error
    const conflict = { clashes, theirs, merged: values, changedBy, changedOn }
    this.state.set({ ...this.state.value, status: 'idle', conflict })
    return true
  }

  /** A save without an answer may have been stored. Its values are ours, so they are no conflict. */
  #adoptUnanswered(base: RecordValues, theirs: RecordValues): RecordValues {
    const sent = this.#unanswered
    if (!sent) return base
    const stored = this.fields.filter(
      (field) =>
        !isSameValue(field, sent[field.name], base[field.name]) &&
        isSameValue(field, sent[field.name], theirs[field.name]),
    )
    return { ...base, ...Object.fromEntries(stored.map(({ name }) => [name, theirs[name]])) }
  }

  async #takeFailure(error: unknown): Promise<void> {
    if (error instanceof NotFoundError && this.id !== undefined) {
      await this.#noticeDeletion(this.id)
      return
    }
    const errors = error instanceof InvalidError || isDuplicate(error) ? toMessages(error) : {}
    const failure = error instanceof Error ? error.message : String(error)
    this.state.set({ ...this.state.value, status: 'failed', errors, failure })
  }

  #notice(changes: readonly Change[]): void {
    const { base, latest } = this.state.value
    const lists = this.fields.filter(({ kind }) => kind === 'owned-list')
    let isConcerned = false
    for (const { model, id, version, action, by, on, changes: changed } of changes) {
      if (model === this.model.name && id === this.id) {
        if (version <= Number(latest['version'])) continue
        if (action === 'delete') this.state.set({ ...this.state.value, deletion: { by, on, version } })
        else isConcerned = true
        for (const name of Object.keys(changed)) this.#authors[name] = { by, on }
      }
      const list = lists.find((each) => each.target === model && listIds(base[each.name]).includes(id))
      if (!list) continue
      isConcerned = true
      this.#authors[list.name] = { by, on }
    }
    if (isConcerned) this.#refreshSoon()
  }

  #refreshSoon(): void {
    this.#refreshTimer ??= setTimeout(() => {
      this.#refreshTimer = undefined
      // The answer to a running save is newer.
      if (this.#isSaving) this.#refreshSoon()
      else void this.refresh()
    }, REFRESH_MS)
  }

  #receive(record: RecordValues): void {
    const { base, latest } = this.state.value
    if (this.#isSaving || record === base) return
    if (Number(record['version']) < Number(latest['version'])) return
    const arrival = { record, authors: this.#authors, focused: findFocusedField() }
    this.state.set({ ...receiveRecord(this.fields, this.state.value, arrival), deletion: undefined })
  }

  async #noticeDeletion(id: number): Promise<void> {
    const { data } = await client.model(this.model.name).history(id, { limit: 1 })
    const [newest] = data
    const deletion =
      newest?.action === 'delete' ? newest : { by: null, on: new Date().toISOString(), version: -1 }
    this.state.set({ ...this.state.value, deletion, status: 'idle' })
  }
}

/** The values of the person that were not chosen. */
function listLost(choices: ReadonlyMap<Clash, unknown>): RecordValues {
  const lost = [...choices].filter(
    ([{ field, line, ours }, value]) => !line && !isSameValue(field, ours, value),
  )
  return Object.fromEntries(lost.map(([{ field, ours }]) => [field.name, ours]))
}

/** Inputs have ids such as `field-email` and `field-addresses[0].city`. */
function findFocusedField(): string | undefined {
  return /^field-([^[.]+)/.exec(document.activeElement?.id ?? '')?.[1]
}

function isDuplicate(error: unknown): error is RequestError {
  return error instanceof RequestError && error.kind === 'not-unique'
}

function toMessages({ fields }: RequestError): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).map(([path, message]) => [path, String(message)]))
}
