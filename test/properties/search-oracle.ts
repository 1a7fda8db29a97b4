// An independent model of search: over plain objects, without SQL and without the code under test.

/** Three-valued logic as in SQL: null is "unknown". */
export type Truth = boolean | null
export type Cell = string | number | boolean | null | readonly number[]
export interface Row {
  readonly id: number
  readonly [field: string]: Cell
}
/** The records of each model. A reference is an id; a list stored in its record is a list of ids. */
export type Dataset = Readonly<Record<string, readonly Row[]>>

export type Scalar =
  'text' | 'number' | 'decimal' | 'boolean' | 'date' | 'time' | 'datetime' | 'uuid' | 'json'
export type Shape = Scalar | Relation
export interface Relation {
  readonly kind: 'one' | 'many'
  readonly target: string
  /** The field of the target that stores the relation; absent if this record stores it. */
  readonly through?: string
}
export interface ModelShape {
  /** The field compared with a text when a relation leads to this model. */
  readonly name: string
  readonly fields: Readonly<Record<string, Shape>>
}
export type Shapes = Readonly<Record<string, ModelShape>>

export interface Term {
  readonly path: string
  readonly operator: string
  readonly value?: unknown
  readonly value2?: unknown
}
export interface Group {
  readonly join: 'and' | 'or' | 'not'
  readonly parts: readonly Question[]
}
export type Question = Term | Group

export class Oracle {
  readonly #known = new Map<Row, Map<string, readonly Row[]>>()

  constructor(
    readonly shapes: Shapes,
    readonly dataset: Dataset,
  ) {}

  /** The ids found, in order. A key with a leading minus is descending. */
  find(model: string, question: Question, sortBy: readonly string[], archived: boolean): number[] {
    const found = this.#rows(model)
      .filter((row) => archived || row['archived'] !== true)
      .filter((row) => this.#holds(model, row, question) === true)
    return found.sort((a, b) => this.#order(model, sortBy, a, b)).map((row) => row.id)
  }

  #holds(model: string, row: Row, question: Question): Truth {
    if (!('join' in question)) return this.#asked(model, row, question.path.split('.'), question)
    const truths = question.parts.map((part) => this.#holds(model, row, part))
    if (question.join === 'or') return negate(all(truths.map(negate)))
    return question.join === 'and' ? all(truths) : negate(all(truths))
  }

  /** `row` is undefined after a step without a record. */
  #asked(model: string, row: Row | undefined, names: readonly string[], term: Term): Truth {
    const [name = '', ...rest] = names
    const shape = this.shapeOf(model, name)
    if (typeof shape === 'string') return compare(shape, row?.[name] ?? null, term)
    const near = row ? this.#neighbours(row, name, shape) : []
    if (shape.kind === 'many' && rest.length === 0 && term.operator === 'isEmpty') return near.length === 0
    if (shape.kind === 'many' && rest.length === 0 && term.operator === 'notEmpty') return near.length > 0
    const ask = (each: Row | undefined) =>
      rest.length > 0
        ? this.#asked(shape.target, each, rest, term)
        : this.#compareWhole(shape.target, each, term)
    return shape.kind === 'one' ? ask(near[0]) : near.some((each) => ask(each) === true)
  }

  /** Compares a related record: by name if the values are texts, otherwise by id. */
  #compareWhole(model: string, row: Row | undefined, term: Term): Truth {
    const inputs = [term.value, term.value2].flat().filter((input) => input !== undefined)
    if (inputs.length === 0 || !inputs.every((input) => typeof input === 'string'))
      return compare('number', row?.id ?? null, { ...term, value: idsOf(term.value) })
    const { name } = this.#modelShape(model)
    return compare(this.#scalarOf(model, name), row?.[name] ?? null, term)
  }

  #order(model: string, sortBy: readonly string[], a: Row, b: Row): number {
    for (const key of sortBy) {
      const names = key.replace(/^-/, '').split('.')
      const [[left, kind], [right]] = [this.#valueAt(model, a, names), this.#valueAt(model, b, names)]
      if (left === null && right === null) continue
      if (left === null || right === null) return left === null ? 1 : -1
      const order = COMPARED[kind](left) < COMPARED[kind](right) ? -1 : 1
      if (COMPARED[kind](left) !== COMPARED[kind](right)) return key.startsWith('-') ? -order : order
    }
    return a.id - b.id
  }

  /** The value at the end of to-one steps; for a reference its name. */
  #valueAt(model: string, row: Row | undefined, names: readonly string[]): [value: Cell, kind: Scalar] {
    const [name = '', ...rest] = names
    const shape = this.shapeOf(model, name)
    if (typeof shape === 'string') return [row?.[name] ?? null, shape]
    if (shape.kind === 'many') throw new Error(`${name} is a list: nothing is sorted by it`)
    const next = rest.length > 0 ? rest : [this.#modelShape(shape.target).name]
    return this.#valueAt(shape.target, row && this.#neighbours(row, name, shape)[0], next)
  }

  #neighbours(row: Row, name: string, relation: Relation): readonly Row[] {
    const near = this.#known.get(row) ?? new Map<string, readonly Row[]>()
    const known = near.get(name) ?? this.#lookFor(row, name, relation)
    this.#known.set(row, near.set(name, known))
    return known
  }

  #lookFor(row: Row, name: string, { target, through }: Relation): readonly Row[] {
    const rows = this.#rows(target)
    if (through !== undefined) return rows.filter((other) => [other[through]].flat().includes(row.id))
    const ids = [row[name]].flat()
    return rows.filter((other) => ids.includes(other.id))
  }

  #rows(model: string): readonly Row[] {
    return this.dataset[model] ?? []
  }

  #modelShape(model: string): ModelShape {
    const shape = this.shapes[model]
    if (!shape) throw new Error(`there is no model ${model}`)
    return shape
  }

  shapeOf(model: string, name: string): Shape {
    const shape = this.#modelShape(model).fields[name]
    if (!shape) throw new Error(`${model} has no ${name}`)
    return shape
  }

  #scalarOf(model: string, name: string): Scalar {
    const shape = this.shapeOf(model, name)
    if (typeof shape !== 'string') throw new Error(`${model}.${name} is a relation`)
    return shape
  }
}

function idsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(idsOf)
  return typeof value === 'object' && value !== null && 'id' in value ? value.id : value
}

function all(truths: readonly Truth[]): Truth {
  if (truths.includes(false)) return false
  return truths.includes(null) ? null : true
}

function negate(truth: Truth): Truth {
  return truth === null ? null : !truth
}

function compare(kind: Scalar, cell: Cell, { operator, value, value2 }: Term): Truth {
  const negated = POSITIVE[operator]
  if (negated !== undefined)
    return negate(compare(kind, cell, { path: '', operator: negated, value, value2 }))
  if (operator === 'isNull') return cell === null
  // An empty list contains nothing, not even null.
  if (operator === 'in' && Array.isArray(value) && value.length === 0) return false
  if (cell === null || value === null) return null
  const compared = COMPARED[kind]
  const left = compared(cell)
  switch (operator) {
    case '=':
      return left === compared(value)
    case '<':
      return left < compared(value)
    case '>':
      return left > compared(value)
    case 'between':
      return left >= compared(value) && left <= compared(value2)
    case 'in':
      return (value as readonly unknown[]).some((each) => compared(each) === left)
    case 'like':
      return isLike(cell as string, value as string)
    default:
      throw new Error(`${operator} cannot be asked here`)
  }
}

/** Each operator is unknown exactly if its positive one is. */
const POSITIVE: Readonly<Record<string, string>> = {
  ...{ '!=': '=', '<=': '>', '>=': '<', notNull: 'isNull' },
  ...{ notIn: 'in', notBetween: 'between', notLike: 'like' },
}

/** Maps values to something that JavaScript compares as the service must; lists are never compared. */
const COMPARED: Readonly<Record<Scalar, (value: unknown) => string | number | bigint>> = {
  text: (value) => codePoints(value as string),
  number: Number,
  decimal: (value) => smallestUnits(String(value)),
  boolean: (value) => Number(value === true || value === 'true'),
  date: (value) => Date.parse(String(value)),
  time: (value) => Date.parse(`1970-01-01T${String(value)}Z`),
  datetime: (value) => Date.parse(String(value)),
  uuid: (value) => String(value).toLowerCase(),
  json: () => 0,
}

/** JavaScript compares UTF-16 units; six digits for each code point sort as code points do. */
function codePoints(text: string): string {
  return Array.from(text, (point) => (point.codePointAt(0) ?? 0).toString(16).padStart(6, '0')).join('')
}

function smallestUnits(decimal: string): bigint {
  const [integer = '', fraction = ''] = decimal.replace(/^[-+]/, '').split('.')
  return BigInt(integer + fraction.padEnd(40, '0')) * (decimal.startsWith('-') ? -1n : 1n)
}

/** Every character beyond ASCII in the texts, with its folded form. */
const FOLDED: Readonly<Record<string, string>> = {
  ...{ é: 'e', É: 'e', Ø: 'o', ø: 'o', İ: 'i', ß: 'ss', ẞ: 'ss', Æ: 'ae' },
  ...{ '\u0301': '', '😀': '😀', '𐐀': '𐐨', '\uFFFD': '\uFFFD' },
}
export const UNUSUAL: readonly string[] = Object.keys(FOLDED)

function fold(character: string): readonly string[] {
  if (/^[A-Z]$/.test(character)) return [String.fromCharCode(character.charCodeAt(0) + 32)]
  const folded = /^[ -~]$/.test(character) ? character : FOLDED[character]
  if (folded === undefined) throw new Error(`${character} is not among the characters of these texts`)
  return Array.from(folded)
}

const ANY = Symbol('%')
const ONE = Symbol('_')
type Piece = string | typeof ANY | typeof ONE

function isLike(text: string, pattern: string): boolean {
  const pieces = piecesOf(Array.from(pattern))
  const isAnchored = pieces[0] === ANY || pieces.at(-1) === ANY
  return isMatch(Array.from(text).flatMap(fold), isAnchored ? pieces : [ANY, ...pieces, ANY])
}

function piecesOf([first, second, ...rest]: readonly string[]): readonly Piece[] {
  if (first === undefined) return []
  const isEscape = first === '\\' && second !== undefined && '%_\\'.includes(second)
  if (isEscape) return [second, ...piecesOf(rest)]
  const piece = first === '%' ? [ANY] : first === '_' ? [ONE] : fold(first)
  return [...piece, ...piecesOf(second === undefined ? [] : [second, ...rest])] as readonly Piece[]
}

function isMatch(text: readonly string[], [piece, ...rest]: readonly Piece[]): boolean {
  if (piece === undefined) return text.length === 0
  if (piece === ANY) return text.some((_, from) => isMatch(text.slice(from), rest)) || isMatch([], rest)
  return text.length > 0 && (piece === ONE || piece === text[0]) && isMatch(text.slice(1), rest)
}
