// Three-way merge of a form: the record that the form was filled with (base), the values of the form (ours), and the record now (theirs).
//
// The service merges fields, too. It takes an owned list or a set of links for one value; a person expects that two added lines are both kept.
// So lists are merged here, member by member, and the service checks the result as any other update.
import { isPendingFile } from '../fields/field-props.js'
import type { FieldInfo } from '../service/model-info.js'
import {
  findId,
  isSameLineValue,
  isSameValue,
  listLineFields,
  listLines,
  type Line,
  type RecordValues,
} from './record-values.js'

/** Both sides changed the same value. `line` names a line of an owned list, and `lineField` a value in it. */
export interface Clash {
  readonly field: FieldInfo
  readonly line?: LineKey | undefined
  /** Undefined if one side removed the line and the other changed it. */
  readonly lineField?: string | undefined
  readonly base: unknown
  readonly ours: unknown
  readonly theirs: unknown
}

export interface LineKey {
  readonly id: number
  /** Words that identify the line for a person. */
  readonly name: string
}

export interface MergeResult {
  /** The values of the form on top of the current record. Clashing values are still ours. */
  readonly values: RecordValues
  readonly clashes: readonly Clash[]
}

export interface Sides {
  readonly base: RecordValues
  readonly ours: RecordValues
  readonly theirs: RecordValues
}

/** `forced` are fields that clash although only one side changed them: those of a merge group that both sides changed. */
export function mergeRecords(
  fields: readonly FieldInfo[],
  sides: Sides,
  forced: ReadonlySet<string> = new Set(),
): MergeResult {
  const merged = fields.map((field) => mergeField(field, sides, forced.has(field.name)))
  return {
    values: Object.fromEntries(fields.map(({ name }, index) => [name, merged[index]?.value])),
    clashes: merged.flatMap(({ clashes }) => clashes),
  }
}

interface MergedField {
  readonly value: unknown
  readonly clashes: readonly Clash[]
}

function mergeField(field: FieldInfo, sides: Sides, isForced: boolean): MergedField {
  const [base, ours, theirs] = [sides.base, sides.ours, sides.theirs].map((each) => each[field.name])
  // The content of a file is not in the record: the service says whether both sides changed it.
  if (field.kind === 'file')
    return { value: ours, clashes: isForced && isPendingFile(ours) ? [{ field, base, ours, theirs }] : [] }
  if (isSameValue(field, ours, theirs)) return { value: theirs, clashes: [] }
  if (isForced && isPlain(field)) return { value: ours, clashes: [{ field, base, ours, theirs }] }
  if (isSameValue(field, ours, base)) return { value: theirs, clashes: [] }
  if (isSameValue(field, theirs, base)) return { value: ours, clashes: [] }
  if (field.kind === 'links') return { value: mergeLinks(base, ours, theirs), clashes: [] }
  if (field.kind === 'owned-list') return mergeLines(field, { base, ours, theirs })
  return { value: ours, clashes: [{ field, base, ours, theirs }] }
}

/** Lists are merged member by member, whatever the service says about the whole list. */
function isPlain({ kind }: FieldInfo): boolean {
  return kind !== 'links' && kind !== 'owned-list'
}

/** Applies what we added and removed to their links. */
function mergeLinks(base: unknown, ours: unknown, theirs: unknown): readonly Line[] {
  const [before, mine, current] = [base, ours, theirs].map(listLines) as [Line[], Line[], Line[]]
  const removed = before.filter((each) => !findLine(mine, each))
  const added = mine.filter((each) => !findLine(before, each) && !findLine(current, each))
  return [...current.filter((each) => !findLine(removed, each)), ...added]
}

interface LineSides {
  readonly base: unknown
  readonly ours: unknown
  readonly theirs: unknown
}

/** Merges owned lines by their identity, never by their position. */
function mergeLines(field: FieldInfo, sides: LineSides): MergedField {
  const base = listLines(sides.base)
  const ours = listLines(sides.ours)
  const theirs = listLines(sides.theirs)
  const merged: MergedLine[] = theirs.map((line) => mergeLine(field, line, { base, ours }))
  // Lines that they removed, and that we have changed.
  const removed = ours
    .filter((line) => findLine(base, line) && !findLine(theirs, line))
    .filter((line) => !isSameLine(line, findLine(base, line)))
    .map((line) => {
      const before = findLine(base, line)
      const clash = { field, line: identify(line), base: before, ours: line, theirs: undefined }
      return { line: undefined, clashes: [clash] }
    })
  const added = ours.filter((line) => !findLine(base, line) && findId(line) === undefined)
  return {
    value: [...merged.flatMap(({ line }) => line ?? []), ...added],
    clashes: [...merged, ...removed].flatMap(({ clashes }) => clashes),
  }
}

interface MergedLine {
  readonly line: Line | undefined
  readonly clashes: readonly Clash[]
}

function mergeLine(
  field: FieldInfo,
  theirs: Line,
  { base, ours }: { readonly base: readonly Line[]; readonly ours: readonly Line[] },
): MergedLine {
  const before = findLine(base, theirs)
  if (!before) return { line: theirs, clashes: [] }
  const mine = findLine(ours, theirs)
  if (!mine) {
    if (isSameLine(theirs, before)) return { line: undefined, clashes: [] }
    const clash = { field, line: identify(theirs), base: before, ours: undefined, theirs }
    return { line: theirs, clashes: [clash] }
  }
  const changed = listLineFields(mine).filter((name) => !isSameLineValue(mine[name], before[name]))
  const clashes = changed
    .filter((name) => !isSameLineValue(theirs[name], before[name]))
    .filter((name) => !isSameLineValue(theirs[name], mine[name]))
    .map((name) => ({
      field,
      line: identify(theirs),
      lineField: name,
      base: before[name],
      ours: mine[name],
      theirs: theirs[name],
    }))
  const values = Object.fromEntries(changed.map((name) => [name, mine[name]]))
  return { line: { ...theirs, ...values }, clashes }
}

function findLine(lines: readonly Line[], { id }: Line): Line | undefined {
  return id === undefined ? undefined : lines.find((line) => line['id'] === id)
}

function isSameLine(left: Line, right: Line | undefined): boolean {
  return (
    right !== undefined &&
    [...new Set([...listLineFields(left), ...listLineFields(right)])].every((name) =>
      isSameLineValue(left[name], right[name]),
    )
  )
}

function identify(line: Line): LineKey {
  const texts = listLineFields(line)
    .map((name) => line[name])
    .filter((value) => typeof value === 'string' && value !== '')
  return { id: findId(line) ?? 0, name: texts.slice(0, 2).join(', ') }
}

/** Puts the value that a person has chosen for a clash into the values of the form. */
export function applyChoice(values: RecordValues, clash: Clash, chosen: unknown): RecordValues {
  const { field, line, lineField } = clash
  // Without a pending file, the stored one stays.
  const isStored = field.kind === 'file' && !isPendingFile(chosen)
  if (!line) return { ...values, [field.name]: isStored ? undefined : chosen }
  const lines = listLines(values[field.name])
  const hasLine = lines.some(({ id }) => id === line.id)
  if (lineField !== undefined)
    return {
      ...values,
      [field.name]: lines.map((each) => (each['id'] === line.id ? { ...each, [lineField]: chosen } : each)),
    }
  if (chosen === undefined) return { ...values, [field.name]: lines.filter(({ id }) => id !== line.id) }
  // A line that they removed comes back as a new one: its id is gone.
  const kept = hasLine ? lines : [...lines, withoutIdentity(chosen)]
  return { ...values, [field.name]: kept }
}

function withoutIdentity(line: unknown): Line {
  const values = line as Line
  return Object.fromEntries(listLineFields(values).map((name) => [name, values[name]]))
}

/** The values of the person that were not chosen. */
export function listLost(choices: ReadonlyMap<Clash, unknown>): RecordValues {
  const lost = [...choices].filter(
    ([{ field, line, ours }, value]) => !line && !isSameValue(field, ours, value),
  )
  return Object.fromEntries(lost.map(([{ field, ours }]) => [field.name, ours]))
}

/** The fields in which a merge has brought something of others: they differ from the form and from what it was filled with. */
export function listTheirFields(fields: readonly FieldInfo[], sides: Sides): readonly FieldInfo[] {
  return fields.filter((field) => {
    if (field.kind === 'file') return false
    const [base, ours, theirs] = [sides.base, sides.ours, sides.theirs].map((each) => each[field.name])
    if (isSameValue(field, theirs, base) || isSameValue(field, theirs, ours)) return false
    // Our new lines have got ids, which is no change of others.
    return field.kind !== 'owned-list' || !isSameLines(listLines(theirs), listLines(ours))
  })
}

function isSameLines(theirs: readonly Line[], ours: readonly Line[]): boolean {
  return theirs.length === ours.length && ours.every((line) => theirs.some((each) => isSameLine(each, line)))
}
