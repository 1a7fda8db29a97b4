// A form of one record: reads it, follows it, saves it, and merges what others save meanwhile. One save at a time.
import { InvalidError, NotFoundError, RequestError, type Change } from 'verso-records/client'
import { explainFailure } from '../layout/message-list.js'
import { subscribeToChanges, subscribeToGaps } from '../service/live.js'
import { listEditableFields, type FieldInfo, type ModelInfo } from '../service/model-info.js'
import { Observable } from '../service/observable.js'
import { client } from '../service/session.js'
import { DraftKeeper, type FoundDraft } from './drafts.js'
import { createEditorState, rebase, receiveRecord, setFieldValue, type EditorState } from './editor-state.js'
import { applyChoice, listLost, type Clash } from './merge.js'
import { readRecord } from './read-record.js'
import { listChangedFields, listIds, type RecordValues } from './record-values.js'
import { findInvalidInputs } from './record-saver.js'
import { combineReports, SaveRun, type SavedForm, type SaveReport } from './save-run.js'

/** The record that a form is opened with. */
export interface EditorSource {
  /** Undefined for a new record. */
  readonly id: number | undefined
  readonly record: RecordValues
  /** By owned list, the fields of its lines that are secrets. */
  readonly lineSecrets: Readonly<Record<string, readonly string[]>>
}

const REFRESH_MS = 150

export class RecordEditor implements SavedForm {
  readonly state: Observable<EditorState>
  readonly fields: readonly FieldInfo[]
  readonly #run: SaveRun
  readonly #drafts: DraftKeeper
  readonly #stops: (() => void)[] = []
  #isSaving = false
  #isDraftKept = true
  #isQueued = false
  #refreshTimer: ReturnType<typeof setTimeout> | undefined
  #authors: Record<string, { by: Change['by']; on: string }> = {}
  #id: number | undefined
  #isStopped = false
  #stopFollowing: (() => void) | undefined
  /** The last save that is not announced yet. */
  #report: SaveReport | undefined

  constructor(
    readonly model: ModelInfo,
    source: EditorSource,
    private readonly onSaved: (report: SaveReport) => void,
  ) {
    const { id, record, lineSecrets } = source
    this.#id = id
    this.fields = listEditableFields(model)
    this.state = new Observable(createEditorState(record))
    this.#run = new SaveRun(this)
    this.#drafts = new DraftKeeper(model.name, id ?? 'new', { fields: this.fields, lineSecrets })
    const keep = () => {
      this.#isDraftKept = this.#drafts.keep(this.state.value)
    }
    this.#stops.push(this.state.subscribe(keep), () => this.#drafts.stop())
  }

  get id(): number | undefined {
    return this.#id
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** The record is created: from now on it is updated, and its draft is that of the record. */
  adoptId(id: number): void {
    this.#id = id
    this.#drafts.moveTo(id)
  }

  /** Puts a draft into the form, with the record that it was based on. Saving it goes through the merge. What was typed since stays. */
  restore(draft: FoundDraft): void {
    const { value } = this.state
    const { latest } = value
    const typed = listChangedFields(this.fields, value.values, value.base).map(({ name }) => name)
    const kept = Object.fromEntries(typed.map((name) => [name, value.values[name]]))
    const known = new Set(this.fields.map(({ name }) => name))
    const drafted = Object.fromEntries(Object.entries(draft.values).filter(([name]) => known.has(name)))
    const values = { ...draft.base, ...drafted, ...kept }
    const restored = { ...value, base: draft.base, values, draftOf: draft.savedOn }
    this.state.set(receiveRecord(this.fields, restored, { record: latest, authors: {}, focused: 'none' }))
    draft.forget()
  }

  /** Follows the record until `unfollow` or `stop`. */
  follow(): void {
    if (this.id === undefined || this.#stopFollowing) return
    const stops = [
      subscribeToChanges((changes) => this.#notice(changes)),
      subscribeToGaps(() => this.#refreshSoon()),
    ]
    this.#stopFollowing = () => {
      for (const stop of stops) stop()
    }
  }

  unfollow(): void {
    clearTimeout(this.#refreshTimer)
    this.#refreshTimer = undefined
    this.#stopFollowing?.()
    this.#stopFollowing = undefined
  }

  /** The page is closed. The draft stays in the browser. */
  stop(): void {
    this.#isStopped = true
    this.unfollow()
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
    if (this.#isSaving) throw new Error('A form that is being saved cannot be discarded')
    this.state.set({ ...createEditorState(latest), deletion: this.state.value.deletion })
    this.#drafts.remove()
    return { base, values, savedOn: new Date().toISOString(), forget: () => undefined }
  }

  /** Saves what was typed. A save during a save waits for it, and sends only what is still unsaved. */
  async save(): Promise<void> {
    // The card asks first.
    if (this.state.value.conflict) return
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
    const report = this.#report
    this.#report = undefined
    if (report && !this.#isStopped) this.onSaved(report)
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

  /** Goes back to the form, with the values that the person has edited in the card. The next save asks again. */
  postpone(edited: ReadonlyMap<Clash, unknown>): void {
    const state = this.state.value
    const values = [...edited].reduce((all, [clash, value]) => applyChoice(all, clash, value), state.values)
    this.state.set({ ...state, values, conflict: undefined, status: 'idle' })
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
      const report = await this.#run.run()
      if (!report) {
        this.state.set({ ...this.state.value, status: 'idle' })
        return
      }
      this.#report = combineReports(this.#report, report)
      this.state.set({ ...this.state.value, status: this.isDirty ? 'idle' : 'saved' })
    } catch (error) {
      await this.#takeFailure(error)
    }
  }

  async #takeFailure(error: unknown): Promise<void> {
    if (error instanceof NotFoundError && this.id !== undefined) {
      await this.#noticeDeletion(this.id)
      return
    }
    const errors = error instanceof InvalidError || isDuplicate(error) ? toMessages(error) : {}
    const failure = explainFailure(error)
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
    const newest = await this.#findNewestChange(id)
    const deletion =
      newest?.action === 'delete' ? newest : { by: null, on: new Date().toISOString(), version: -1 }
    this.state.set({ ...this.state.value, deletion, status: 'idle' })
  }

  /** Undefined if the person may not see the history any more, or if the service cannot be reached. */
  async #findNewestChange(id: number): Promise<Change | undefined> {
    try {
      return (await client.model(this.model.name).history(id, { limit: 1 })).data[0]
    } catch (error) {
      if (error instanceof RequestError) return undefined
      throw error
    }
  }
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
