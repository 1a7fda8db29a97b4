// The lines of an owned list in a form.
//
// A stored line has the `id` and the `version` of its record, and its fields. A new one has a `$key` and no id. The list holds exactly
// the lines that are sent, in their order: a removed line is not in it, so the index of a line is the one in messages of the service.
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { buildInitialValues, listFormFields } from './initial-values.js'

export type Line = Readonly<Record<string, unknown>>

/** A line that the person has removed. The page offers it back in its place until the form is saved. */
export interface RemovedLine {
  readonly line: Line
  /** Its place among all lines that were shown, removed ones included. */
  readonly position: number
}

/** A line as it is shown. `index` is that in the list; undefined for a removed line. */
export interface ShownLine {
  readonly line: Line
  readonly index: number | undefined
}

let lastKey = 0

export function readLines(value: unknown): readonly Line[] {
  return Array.isArray(value)
    ? value.filter((each): each is Line => typeof each === 'object' && each !== null)
    : []
}

export function createLine(model: ModelInfo, mappedBy: string | undefined): Line {
  const values = Object.fromEntries(
    Object.entries(buildInitialValues(model)).filter(([name]) => name !== mappedBy),
  )
  return { ...values, $key: `new-${Date.now().toString(36)}-${++lastKey}` }
}

export function findLineKey(line: Line, index: number): string {
  const { id, $key } = line
  if (typeof id === 'number') return `id-${id}`
  return typeof $key === 'string' ? $key : `index-${index}`
}

/** A new line that nobody has filled in can go without a trace. */
export function isUntouched(line: Line, model: ModelInfo): boolean {
  if (line['id'] !== undefined) return false
  const initial = buildInitialValues(model)
  return Object.entries(line).every(([name, value]) => {
    const isEmpty = value === null || value === undefined || (Array.isArray(value) && value.length === 0)
    return name === '$key' || isEmpty || JSON.stringify(value) === JSON.stringify(initial[name])
  })
}

/** Puts removed lines between the others, where they were. One that is in the list again is not removed any longer. */
export function mergeRemoved(lines: readonly Line[], removed: readonly RemovedLine[]): readonly ShownLine[] {
  const shown: ShownLine[] = lines.map((line, index) => ({ line, index }))
  const keys = new Set(lines.map(findLineKey))
  const missing = removed.filter(({ line }) => !keys.has(findLineKey(line, -1)))
  for (const { line, position } of missing.toSorted((left, right) => left.position - right.position))
    shown.splice(position, 0, { line, index: undefined })
  return shown
}

/** The fields of a line that a person can write, without the way back to its owner. */
export function listLineFields(model: ModelInfo, mappedBy: string | undefined): readonly FieldInfo[] {
  return listFormFields(model).filter(
    ({ name, isReadonly, isComputed, kind }) =>
      name !== mappedBy && !isReadonly && !isComputed && kind !== 'inverse',
  )
}

/** The service leaves out of a stored line what the person may not read there. */
export function isInLine({ name, isSecret, isWriteOnly, kind }: FieldInfo, line: Line): boolean {
  return (
    line['id'] === undefined ||
    name in line ||
    isSecret ||
    isWriteOnly ||
    kind === 'file' ||
    kind === 'owned-list'
  )
}
