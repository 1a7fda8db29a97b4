// The expected result of a write by the documentation alone: its error, or the records afterwards.
import type { Cell, Row, Dataset } from '../properties/search-oracle.js'
import { MODELS, PROJECT, SHAPES, TAG, USER, VIEWS } from './project-records.js'
import { namesOf } from './read-cells.js'
import { complete, isAmong, type Reference } from './reference.js'

export type Cells = Readonly<Record<string, Cell>>

/** One record that a request writes or deletes, in the order of the checks. */
export interface Step {
  readonly model: string
  readonly action: 'create' | 'update' | 'remove'
  readonly id?: number
  readonly cells?: Cells
  /** Further fields that are sent, and those of them that change. */
  readonly sent?: readonly string[]
  readonly changed?: readonly string[]
  /** True in a save of several records, which checks names first. */
  readonly isOneOfSeveral?: boolean
  /** True for a file, which a path names. */
  readonly isFile?: boolean
  /** True for a record deleted with its owner. */
  readonly isMember?: boolean
}

const KEPT = ['version', 'createdOn', 'updatedOn', 'updatedBy']
/** New records get this id plus the index of their step. */
export const NEW_ID = 1_000

/** The kind of the error of a request, or the dataset afterwards. */
export function judge(reference: Reference, model: string, steps: readonly Step[]): string | Dataset {
  if (!reference.isKnown(model)) return 'unknown-model'
  if (steps[0]?.action === 'create' && reference.grantsOn(model, 'c').length === 0) return 'forbidden'
  const [first] = steps
  const isAlone = first?.action === 'update' && first.isOneOfSeveral !== true
  if (isAlone && reference.grantsOn(model, 'u').length === 0)
    return errorBefore(reference, first) ?? 'forbidden'
  if (steps.some((step) => step.action !== 'remove' && isMisnamed(reference, step)))
    return first?.isFile === true ? 'not-found' : 'invalid'
  const inOrder = [
    ...steps.filter(({ isMember }) => isMember !== true),
    ...steps.filter(({ isMember }) => isMember),
  ]
  for (const step of inOrder) {
    const error = errorBefore(reference, step)
    if (error !== undefined) return error
  }
  if (steps.some((step) => leadsNowhere(reference, step))) return 'invalid'
  const whole = steps.map((step) => withUnseen(reference, step))
  const start = bare(reference.dataset)
  const after = whole.reduce((before, step, index) => applied(before, step, index, reference.user.id), start)
  const later = reference.inDataset(complete(SHAPES, after))
  const mays = whole.map((step, index) => isPermitted(reference, later, step, index))
  return mays.includes(false) ? 'forbidden' : after
}

/** A hidden record is not-found; a hidden member prevents the delete of its owner instead. */
function errorBefore(reference: Reference, step: Step): string | undefined {
  if (step.action === 'create') return undefined
  const row = rowAt(reference, step)
  if (!row || !reference.sees(step.model, row)) return step.isMember === true ? 'forbidden' : 'not-found'
  const letter = step.action === 'update' ? 'u' : 'd'
  return reference.met(step.model, row, letter).length === 0 ? 'forbidden' : undefined
}

function rowAt({ dataset }: Reference, { model, id }: Step): Row | undefined {
  return dataset[model]?.find((row) => row.id === id)
}

function isMisnamed(reference: Reference, { model, cells = {}, sent = [] }: Step): boolean {
  return [...Object.keys(cells), ...sent].some((name) => !reference.sends(model, name))
}

/** True if a reference leads to a hidden record. */
function leadsNowhere(reference: Reference, { model, cells = {} }: Step): boolean {
  return Object.entries(cells).some(([name, cell]) => {
    const shape = SHAPES[model]?.fields[name]
    const wanted = [cell ?? []].flat().filter((id) => Number(id) < NEW_ID) as readonly number[]
    return (
      typeof shape === 'object' && reference.near(shape.target, wanted, shape.through).length < wanted.length
    )
  })
}

/** Keeps the members that the sender does not see. */
function withUnseen(reference: Reference, step: Step): Step {
  const former = step.action === 'update' ? rowAt(reference, step) : undefined
  if (!former || step.model !== PROJECT || !Array.isArray(step.cells?.['tags'])) return step
  const seen = reference.near(TAG, former['tags']).map(({ id }) => id)
  const unseen = (former['tags'] as readonly number[]).filter((id) => !seen.includes(id))
  const tags = [...new Set([...(step.cells['tags'] as readonly number[]), ...unseen])].sort((a, b) => a - b)
  return { ...step, cells: { ...step.cells, tags } }
}

function isPermitted(before: Reference, after: Reference, step: Step, index: number): boolean {
  const { model, action, cells = {}, changed: others = [] } = step
  const former = rowAt(before, step)
  const later = after.look.at(model, step.id ?? NEW_ID + index)
  if (action === 'remove') return former !== undefined && before.met(model, former, 'd').length > 0
  if (!later) return false
  const letter = action === 'create' ? 'c' : 'u'
  const sides = [...(former ? [before.met(model, former, letter)] : []), after.met(model, later, letter)]
  if (sides.some((grants) => grants.length === 0)) return false
  const changed = Object.keys(cells).filter((name) => {
    const was = former
      ? former[name]
      : (DEFAULTS[`${model}.${name}`] ?? (Array.isArray(cells[name]) ? [] : null))
    const isHidden = former !== undefined && !before.shows(model, former, name)
    return isHidden || JSON.stringify(was ?? null) !== JSON.stringify(later[name] ?? null)
  })
  return [...changed, ...others].every((name) =>
    sides.every((grants) => grants.some(({ writable }) => isAmong(writable, name))),
  )
}
const DEFAULTS: Readonly<Record<string, Cell>> = { [`${PROJECT}.score`]: 0, [`${TAG}.archived`]: false }

/** The records without inverse relations, which are filled in afterwards. */
function bare(dataset: Dataset): Dataset {
  return Object.fromEntries(MODELS.map((model) => [model, dataset[model] ?? []]))
}

function applied(
  dataset: Dataset,
  { model, action, id, cells = {} }: Step,
  index: number,
  user: number,
): Dataset {
  const rows = dataset[model] ?? []
  if (action === 'create') {
    const empty = namesOf(model).map((name) => [
      name,
      DEFAULTS[`${model}.${name}`] ?? (name === 'tags' ? [] : null),
    ])
    const row = { ...(Object.fromEntries(empty) as Cells), ...cells, id: NEW_ID + index, createdBy: user }
    return { ...dataset, [model]: [...rows, row] }
  }
  if (action === 'update')
    return { ...dataset, [model]: rows.map((row) => (row.id === id ? { ...row, ...cells } : row)) }
  const left = { ...dataset, [model]: rows.filter((row) => row.id !== id) }
  if (model !== TAG) return left
  const without = (row: Row): Row => ({
    ...row,
    tags: (row['tags'] as readonly number[]).filter((tag) => tag !== id),
  })
  return { ...left, [PROJECT]: (left[PROJECT] ?? []).map(without) }
}

/** The dataset in comparable form: without versions and times, and with `new` for new ids. */
export function contents(dataset: Dataset, known: Dataset): unknown {
  const whole = complete(SHAPES, bare(dataset))
  const isKnown = (model: string, id: Cell) => (known[model] ?? []).some((row) => row.id === id)
  return MODELS.map((model) =>
    (whole[model] ?? []).map((row) => {
      const shown = Object.entries(row).filter(
        ([name]) => !KEPT.includes(name) && !VIEWS.includes(`${model}.${name}`),
      )
      const called = shown.map(([name, cell]): [string, unknown] => {
        const shape = SHAPES[model]?.fields[name]
        const target = name === 'id' ? model : typeof shape === 'object' ? shape.target : undefined
        if (target === undefined || target === USER || cell === null) return [name, cell]
        const call = (id: Cell) => (isKnown(target, id) ? id : 'new')
        return [name, Array.isArray(cell) ? cell.map(call) : call(cell)]
      })
      return sorted(Object.fromEntries(called))
    }),
  )
}

export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  )
}
