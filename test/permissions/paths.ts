// Every path from a model, and a question about each.
import type { Cell, Scalar, Shape, Term, Dataset } from '../properties/search-oracle.js'
import { SHAPES, USER } from './project-records.js'

export type Path = readonly string[]

export function shapeAt(model: string, [name = '', ...rest]: Path): Shape {
  const shape = SHAPES[model]?.fields[name]
  if (shape === undefined) throw new Error(`${model} has no ${name}`)
  return rest.length > 0 && typeof shape === 'object' ? shapeAt(shape.target, rest) : shape
}

/** Paths of at most `length` names, over lists only on request. For users only the name is followed. */
export function pathsFrom(model: string, length: number, overLists: boolean): readonly Path[] {
  const fields = Object.entries(SHAPES[model]?.fields ?? {})
  return fields.flatMap(([name, shape]): Path[] => {
    if (typeof shape === 'string' || length === 1) return [[name]]
    if (shape.kind === 'many' && !overLists) return [[name]]
    if (shape.target === USER) return [[name], [name, 'name']]
    return [[name], ...pathsFrom(shape.target, length - 1, overLists).map((rest) => [name, ...rest])]
  })
}

export function endsAtList(model: string, path: Path): boolean {
  const shape = shapeAt(model, path)
  return typeof shape === 'object' && shape.kind === 'many'
}

const OPERATORS: Readonly<Record<Scalar | 'one' | 'many', readonly string[]>> = {
  text: ['=', '!=', 'isNull', '<', 'notNull', 'like', 'notLike', 'in', 'notIn'],
  number: ['=', '>', 'isNull', 'between', '!=', 'notIn', 'notBetween'],
  boolean: ['=', 'isNull', '!=', 'notNull'],
  date: ['<', 'isNull', '=', '>=', 'notBetween'],
  datetime: ['isNull', 'notNull', '<'],
  ...{ decimal: [], time: [], uuid: [], json: [] },
  one: ['=', 'isNull', '!=', 'notNull', 'in', 'notIn'],
  many: ['isEmpty', '=', 'notEmpty', 'in', '!='],
}

/** A question about the end of the path; `turn` selects the operator and the value. */
export function termAt(dataset: Dataset, model: string, path: Path, turn: number): Term {
  const owner = path.length === 1 ? model : ownerOf(model, path)
  const name = path.at(-1) ?? ''
  const shape = shapeAt(model, path)
  const kind = typeof shape === 'string' ? shape : shape.kind
  const operators = OPERATORS[kind]
  const operator = operators[turn % operators.length] ?? 'isNull'
  const cells = (dataset[owner] ?? []).flatMap((row): readonly Cell[] => [row[name] ?? null].flat())
  const known = [...new Set(cells)].filter((cell) => cell !== null)
  const at = (index: number) =>
    known[index % Math.max(1, known.length)] ?? (kind.startsWith('date') ? '2024-01-01' : 1)
  const base = { path: path.join('.'), operator }
  if (['isNull', 'notNull', 'isEmpty', 'notEmpty'].includes(operator)) return base
  if (operator === 'in' || operator === 'notIn') return { ...base, value: [at(turn), at(turn + 3)] }
  if (operator === 'between' || operator === 'notBetween')
    return { ...base, value: at(turn), value2: at(turn + 2) }
  if (operator.endsWith('ike')) return { ...base, value: String(at(turn)).slice(0, 2) }
  return { ...base, value: at(turn) }
}

function ownerOf(model: string, [name = '', ...rest]: Path): string {
  const shape = SHAPES[model]?.fields[name]
  if (typeof shape !== 'object') return model
  return rest.length === 1 ? shape.target : ownerOf(shape.target, rest)
}
