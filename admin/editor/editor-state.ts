// The state of a form, and how it changes. Pure functions: record-editor.ts calls the service.
import type { UserReference } from '../service/people.js'
import type { FieldInfo } from '../service/model-info.js'
import type { Clash } from './merge.js'
import { isSameValue, listChangedFields, type RecordValues } from './record-values.js'

/** What somebody else has saved in a field since the form was filled. */
export interface Mark {
  readonly value: unknown
  readonly by: UserReference | null
  readonly on: string
  /** The form shows their value already, because the person had changed nothing. */
  readonly isAdopted: boolean
}

export interface Conflict {
  readonly clashes: readonly Clash[]
  /** The record now, on which the resolved values are saved. */
  readonly theirs: RecordValues
  /** Our values with everything merged that does not clash. */
  readonly merged: RecordValues
  readonly changedBy: UserReference | null
  readonly changedOn: string | null
}

export interface Deletion {
  readonly by: UserReference | null
  readonly on: string
  /** The version of the delete. */
  readonly version: number
}

export interface EditorState {
  /** The record that the form was filled with. A save names its version. */
  readonly base: RecordValues
  /** What the inputs show. */
  readonly values: RecordValues
  /** The newest record that is known. */
  readonly latest: RecordValues
  readonly marks: Readonly<Record<string, Mark>>
  /** Values of the person that a conflict was not decided for. They are nowhere else, because they were never saved. */
  readonly lost: RecordValues
  /** Messages by path, as the service sends them. */
  readonly errors: Readonly<Record<string, string>>
  readonly status: 'idle' | 'saving' | 'saved' | 'failed'
  readonly failure: string
  readonly conflict: Conflict | undefined
  readonly deletion: Deletion | undefined
  /** When the draft was typed that the form was filled from. */
  readonly draftOf: string | undefined
}

export function createEditorState(record: RecordValues): EditorState {
  return {
    base: record,
    values: record,
    latest: record,
    marks: {},
    lost: {},
    errors: {},
    status: 'idle',
    failure: '',
    conflict: undefined,
    deletion: undefined,
    draftOf: undefined,
  }
}

export function setFieldValue(state: EditorState, name: string, value: unknown): EditorState {
  const errors = Object.fromEntries(
    Object.entries(state.errors).filter(([path]) => path !== name && !path.startsWith(`${name}[`)),
  )
  const status = state.status === 'saved' ? 'idle' : state.status
  return { ...state, values: { ...state.values, [name]: value }, errors, status }
}

export interface Arrival {
  readonly record: RecordValues
  /** Who changed which field, as far as it is known. */
  readonly authors: Readonly<Record<string, { readonly by: UserReference | null; readonly on: string }>>
  /** The field with the focus. Its value never changes under the caret. */
  readonly focused: string | undefined
}

/** Takes a newer record from the service. Nothing that the person has typed or is typing changes. */
export function receiveRecord(
  fields: readonly FieldInfo[],
  state: EditorState,
  { record, authors, focused }: Arrival,
): EditorState {
  const { base, values } = state
  const changed = fields.filter((field) => !isSameValue(field, record[field.name], base[field.name]))
  const isClean = listChangedFields(fields, values, base).length === 0
  const canAdopt = isClean && !changed.some(({ name }) => name === focused)
  const marked = changed.filter(
    (field) => canAdopt || !isSameValue(field, record[field.name], values[field.name]),
  )
  const now = typeof record['updatedOn'] === 'string' ? record['updatedOn'] : ''
  const marks = marked.map(({ name }) => {
    const known = state.marks[name]
    const { by, on } = authors[name] ?? known ?? { by: null, on: now }
    return [name, { value: record[name], by, on, isAdopted: canAdopt }] as const
  })
  // Marks of values that were adopted before stay until the next edit.
  const kept = canAdopt ? Object.entries(state.marks).filter(([, { isAdopted }]) => isAdopted) : []
  return {
    ...state,
    latest: record,
    marks: Object.fromEntries([...kept, ...marks]),
    ...(canAdopt ? { base: record, values: { ...values, ...record } } : {}),
  }
}

/** Takes the answer to a save. What was typed while the service was saving stays, and is still unsaved. */
export function receiveAnswer(
  fields: readonly FieldInfo[],
  state: EditorState,
  sent: RecordValues,
  answer: RecordValues,
): EditorState {
  const typed = fields.filter((field) => !isSameValue(field, state.values[field.name], sent[field.name]))
  const kept = Object.fromEntries(typed.map(({ name }) => [name, state.values[name]]))
  return {
    ...state,
    base: answer,
    latest: answer,
    values: { ...answer, ...kept },
    marks: {},
    errors: {},
    conflict: undefined,
    failure: '',
    draftOf: undefined,
    status: typed.length === 0 ? 'saved' : 'idle',
  }
}

/** Puts the values of the form onto a newer record. `values` are merged already, except for what was typed since `sent`. */
export function rebase(
  fields: readonly FieldInfo[],
  state: EditorState,
  sent: RecordValues,
  onto: { readonly record: RecordValues; readonly values: RecordValues },
): EditorState {
  const typed = fields.filter((field) => !isSameValue(field, state.values[field.name], sent[field.name]))
  const kept = Object.fromEntries(typed.map(({ name }) => [name, state.values[name]]))
  return {
    ...state,
    base: onto.record,
    latest: onto.record,
    values: { ...onto.record, ...onto.values, ...kept },
    marks: {},
    conflict: undefined,
  }
}
