// One save of a form: sends it step by step, merges what others have saved meanwhile, and waits for a new session.
import { ConflictError, RequestError, UnauthenticatedError, type WireRecord } from 'verso-records/client'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import type { Observable } from '../service/observable.js'
import { waitForSession } from '../service/session.js'
import { rebase, receiveAnswer, type EditorState } from './editor-state.js'
import { listTheirFields, mergeRecords } from './merge.js'
import { readRecord } from './read-record.js'
import { RecordSaver } from './record-saver.js'
import { isSameValue, type RecordValues } from './record-values.js'

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

/** A queued save continues the one before it. */
export function combineReports(earlier: SaveReport | undefined, report: SaveReport): SaveReport {
  if (!earlier) return report
  const { isNew, from, since } = earlier
  return { ...report, isNew, from, since, merged: [...new Set([...earlier.merged, ...report.merged])] }
}

/** The form that is saved. */
export interface SavedForm {
  readonly model: ModelInfo
  readonly fields: readonly FieldInfo[]
  readonly state: Observable<EditorState>
  /** Undefined until the record is created. */
  readonly id: number | undefined
  /** The page is closed, or somebody else is signed in. */
  readonly isStopped: boolean
  adoptId(id: number): void
}

interface Progress {
  from: number | undefined
  to: number
}

/** Others may save between our read and our next attempt. */
const MAX_ATTEMPTS = 10

export class SaveRun {
  readonly #saver: RecordSaver
  /** Sent with a save that has got no answer: the service may have stored it. */
  #unanswered: RecordValues | undefined

  constructor(private readonly form: SavedForm) {
    this.#saver = new RecordSaver(form.model, form.fields)
  }

  /** Returns undefined if the person has to decide about a conflict, or if the form is closed. Throws if nothing more was saved. */
  async run(): Promise<SaveReport | undefined> {
    const { form } = this
    const { base: first, values } = form.state.value
    const isNew = form.id === undefined
    const progress: Progress = { from: undefined, to: -1 }
    for (let attempt = 1; !form.isStopped; attempt++) {
      try {
        await this.#send(progress)
        this.#unanswered = undefined
        const record = form.state.value.base
        const merged = isNew
          ? []
          : listTheirFields(form.fields, { base: first, ours: values, theirs: record })
        const { from = -1, to } = progress
        return { record, isNew, from, to, merged, since: Number(first['version'] ?? -1) }
      } catch (error) {
        if (!(await this.#recover(error, attempt))) return undefined
      }
    }
    return undefined
  }

  /** Returns true if another attempt may succeed. */
  async #recover(error: unknown, attempt: number): Promise<boolean> {
    if (error instanceof UnauthenticatedError) return waitForSession()
    const { id } = this.form
    if (error instanceof ConflictError && id !== undefined && attempt < MAX_ATTEMPTS)
      return this.#merge(id, error)
    if (error instanceof RequestError && isUnanswered(error)) this.#unanswered = this.form.state.value.values
    throw error
  }

  /** Each step is adopted when it is stored, so that a failure after it repeats nothing. */
  async #send(progress: Progress): Promise<void> {
    const { form } = this
    const { values, base } = form.state.value
    const { id } = form
    let files = this.#saver.listPendingFiles(values)
    let record: WireRecord | undefined
    if (id === undefined) {
      record = await this.#saver.create(values)
      files = files.slice(1)
      form.adoptId(record.id)
    } else record = await this.#saver.update(id, values, base)
    if (record) {
      progress.from ??= record.version - 1
      await this.#adopt(record, values, files)
    }
    for (const file of files) {
      const current = record ?? (form.state.value.base as WireRecord)
      progress.from ??= current.version
      record = await this.#saver.storeFile(current, file, values[file.name])
      files = files.filter((each) => each !== file)
      await this.#adopt(record, values, files)
    }
    if (record) progress.to = record.version
  }

  /** Takes the answer to a step. Files that are still to be sent stay pending. */
  async #adopt(answer: WireRecord, sent: RecordValues, files: readonly FieldInfo[]): Promise<void> {
    const { form } = this
    const record = await this.#readLines(answer)
    const waiting = Object.fromEntries(files.map(({ name }) => [name, undefined]))
    const state = receiveAnswer(form.fields, form.state.value, { ...sent, ...waiting }, record)
    form.state.set({ ...state, status: 'saving' })
  }

  /** An answer names only the lines of owned lists. If they cannot be read now, the form reads them later. */
  async #readLines(answer: WireRecord): Promise<RecordValues> {
    const { model, fields } = this.form
    if (!fields.some(({ kind }) => kind === 'owned-list')) return answer
    try {
      return await readRecord(model, answer.id)
    } catch (error) {
      if (error instanceof RequestError) return answer
      throw error
    }
  }

  /** Merges with the record as it is now. Returns false if the person has to decide. */
  async #merge(id: number, error: ConflictError): Promise<boolean> {
    const { model, fields, state: observable } = this.form
    const theirs = await readRecord(model, id)
    const state = observable.value
    const ours = state.values
    const isOfRecord = error.data['entityName'] === model.name && error.data['entityId'] === id
    const clashing = isOfRecord
      ? Object.keys(error.fields).filter((name) => error.fields[name]?.verdict === 'clash')
      : []
    const base = this.#adoptUnanswered(state.base, theirs)
    const forced = new Set(clashing.filter((name) => base[name] === state.base[name]))
    const files = fields.filter(({ kind, name }) => kind === 'file' && forced.has(name))
    const described = Object.fromEntries(files.map(({ name }) => [name, error.fields[name]?.theirs]))
    const sides = { base, ours, theirs: { ...theirs, ...described } }
    const { values, clashes } = mergeRecords(fields, sides, forced)
    if (clashes.length === 0) {
      observable.set(rebase(fields, state, ours, { record: theirs, values }))
      return true
    }
    const { changedBy, changedOn } = error
    observable.set({
      ...state,
      status: 'idle',
      conflict: { clashes, theirs, merged: values, changedBy, changedOn },
    })
    return false
  }

  /** A save without an answer may have been stored. Its values are ours, so they are no conflict. */
  #adoptUnanswered(base: RecordValues, theirs: RecordValues): RecordValues {
    const sent = this.#unanswered
    if (!sent) return base
    const stored = this.form.fields.filter(
      (field) =>
        !isSameValue(field, sent[field.name], base[field.name]) &&
        isSameValue(field, sent[field.name], theirs[field.name]),
    )
    return { ...base, ...Object.fromEntries(stored.map(({ name }) => [name, theirs[name]])) }
  }
}

/** A proxy may answer for a service that has stored the write. */
function isUnanswered({ status }: RequestError): boolean {
  return status === 0 || status >= 500
}
