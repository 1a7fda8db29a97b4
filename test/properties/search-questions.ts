// Random searches: any path, any operator that fits, values that often exist, nested groups, random orders.
import fc from 'fast-check'
import type { Transport } from '../targets.js'
import type { Cell, Question, Scalar, Shape, Term, Dataset } from './search-oracle.js'
import { date, decimal, moment, SHAPES, text, time, uuid, whole } from './search-fixture.js'

export interface Style {
  readonly isUpperCase: boolean
  readonly hasSelf: boolean
  readonly isDoubleQuoted: boolean
  /** Selects the values that become parameters of a `_domain`, repeating in order. */
  readonly parameters: readonly boolean[]
}

/** One search, with the way to send it. */
export interface Ask {
  readonly model: string
  readonly question: Question
  readonly sortBy: readonly string[]
  readonly archived: boolean
  readonly pageSize: number
  readonly style: Style
  readonly transport: Transport
  /** Selects the engine for each form. */
  readonly turn: number
}

const MAX_STEPS = 4
const MAX_SORT_STEPS = 3
/** The limit of the service; the check here counts slightly more relations than the service. */
const MAX_RELATIONS = 32
const NO_SUCH_ID = 9_999

const EQUALITY = ['=', '!=', 'in', 'notIn']
const PRESENCE = ['isNull', 'notNull']
const ORDER = ['<', '>', '<=', '>=', 'between', 'notBetween']
const PATTERNS = ['like', 'notLike']
const EMPTINESS = ['isEmpty', 'notEmpty']

const OPERATORS: Readonly<Record<Scalar, readonly string[]>> = {
  text: [...EQUALITY, ...PRESENCE, ...ORDER, ...PATTERNS, ...PATTERNS],
  number: [...EQUALITY, ...PRESENCE, ...ORDER],
  decimal: [...EQUALITY, ...PRESENCE, ...ORDER],
  date: [...EQUALITY, ...PRESENCE, ...ORDER],
  time: [...EQUALITY, ...PRESENCE, ...ORDER],
  datetime: [...EQUALITY, ...PRESENCE, ...ORDER],
  boolean: [...EQUALITY, ...PRESENCE],
  uuid: [...EQUALITY, ...PRESENCE],
  json: PRESENCE,
}

/** Values that no record has, or spelled differently from the records. */
const OTHERS: Readonly<Record<Scalar, fc.Arbitrary<unknown>>> = {
  text,
  number: fc.oneof(whole, whole.map(String)),
  decimal: fc.oneof(
    decimal,
    fc.constantFrom(1.5, 9, -10.05, '1.505', '+1.500', '-0', `0.${'0'.repeat(37)}1`),
  ),
  date,
  time: fc.oneof(time, fc.constantFrom('09:30', '12:00')),
  datetime: fc.oneof(
    moment,
    fc.constantFrom('2024-02-29T14:00:00.001+02:00', '1970-01-01', '1969-12-31T18:59:59.999-05:00'),
  ),
  boolean: fc.constantFrom(true, false, 'true', 'false'),
  uuid: uuid.map((each) => each.toUpperCase()),
  json: fc.constant(null),
}

/** The arbitraries for one dataset. */
export class Asking {
  readonly #paths = new Map<string, readonly (readonly string[])[]>()

  constructor(readonly dataset: Dataset) {}

  ask(models: readonly string[]): fc.Arbitrary<Ask> {
    return fc.constantFrom(...models).chain((model) =>
      fc
        .record({
          model: fc.constant(model),
          question: this.#question(model),
          sortBy: fc.array(this.#sortKey(model), { maxLength: 3 }),
          archived: fc.boolean(),
          pageSize: fc.constantFrom(11, 40, 100),
          style: fc.record({
            ...{ isUpperCase: fc.boolean(), hasSelf: fc.boolean(), isDoubleQuoted: fc.boolean() },
            parameters: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
          }),
          turn: fc.nat(1),
          transport: fc.oneof(
            { weight: 7, arbitrary: fc.constant('direct' as const) },
            { weight: 1, arbitrary: fc.constant('http' as const) },
          ),
        })
        .filter(({ question, sortBy }) => countRelations(question, sortBy) <= MAX_RELATIONS),
    )
  }

  #question(model: string): fc.Arbitrary<Question> {
    const term = this.#term(model)
    const { question } = fc.letrec<{ question: Question; group: Question }>((tie) => ({
      question: fc.oneof({ maxDepth: 4, depthSize: 'small', withCrossShrink: true }, term, tie('group')),
      group: fc.record({
        join: fc.constantFrom('and' as const, 'or' as const, 'not' as const),
        parts: fc.array(tie('question'), { minLength: 1, maxLength: 3 }),
      }),
    }))
    return question
  }

  #term(model: string): fc.Arbitrary<Term> {
    return fc
      .integer({ min: 0, max: MAX_STEPS })
      .chain((steps) => fc.constantFrom(...this.#pathsOf(model, steps, false)))
      .chain((path) => this.#termAt(model, path))
  }

  #termAt(model: string, path: readonly string[]): fc.Arbitrary<Term> {
    const [owner, shape, name] = endOf(model, path)
    if (typeof shape === 'string') return this.#comparison(path, shape, owner, name)
    const none = fc.constant(NO_SUCH_ID)
    const ids = fc.oneof({ weight: 3, arbitrary: this.#existing(shape.target, 'id') ?? none }, none)
    const byId = (shape.kind === 'one' ? PRESENCE : EMPTINESS).concat(EQUALITY)
    const id = fc.oneof(
      ids,
      ids.map((each) => ({ id: each })),
    )
    const target = SHAPES[shape.target]?.name ?? ''
    return fc.oneof(
      this.#compared(path, byId, id),
      // A text value means a comparison by name.
      this.#comparison(path, 'text', shape.target, target).filter(
        ({ operator, value }) => !PRESENCE.includes(operator) && value !== null,
      ),
    )
  }

  #comparison(path: readonly string[], kind: Scalar, owner: string, name: string): fc.Arbitrary<Term> {
    const others = OTHERS[kind]
    const value = fc.oneof({ weight: 3, arbitrary: this.#existing(owner, name) ?? others }, others)
    return this.#compared(path, OPERATORS[kind], value)
  }

  #compared(
    path: readonly string[],
    operators: readonly string[],
    value: fc.Arbitrary<unknown>,
  ): fc.Arbitrary<Term> {
    return fc.constantFrom(...operators).chain((operator) => {
      const made = { path: fc.constant(path.join('.')), operator: fc.constant(operator) }
      if ([...PRESENCE, ...EMPTINESS].includes(operator)) return fc.record(made)
      if (PATTERNS.includes(operator)) return fc.record({ ...made, value: patternOf(value) })
      if (['in', 'notIn'].includes(operator))
        return fc.record({ ...made, value: fc.array(value, { maxLength: 4 }) })
      if (['between', 'notBetween'].includes(operator)) return fc.record({ ...made, value, value2: value })
      return fc.record({ ...made, value: fc.option(value, { freq: 12 }) })
    })
  }

  /** Values of existing records, so that searches find something. */
  #existing(model: string, name: string): fc.Arbitrary<unknown> | undefined {
    const cells = (this.dataset[model] ?? []).map((row) => row[name] ?? null)
    const known = [...new Set(cells)].filter((cell): cell is Exclude<Cell, null> => cell !== null)
    return known.length === 0 ? undefined : fc.constantFrom(...known)
  }

  #sortKey(model: string): fc.Arbitrary<string> {
    return fc
      .tuple(fc.constantFrom('', '-'), fc.integer({ min: 0, max: MAX_SORT_STEPS }))
      .chain(([sign, steps]) =>
        fc.constantFrom(...this.#pathsOf(model, steps, true)).map((path) => sign + path.join('.')),
      )
  }

  /** Paths over `steps` relations; without lists for a sort key. Falls back to fewer steps if there are none. */
  #pathsOf(model: string, steps: number, isSorted: boolean): readonly (readonly string[])[] {
    const key = `${model} ${steps} ${isSorted}`
    const known = this.#paths.get(key)
    if (known) return known
    const found = pathsFrom(model, steps, isSorted)
    const paths = found.length > 0 ? found : this.#pathsOf(model, steps - 1, isSorted)
    this.#paths.set(key, paths)
    return paths
  }
}

function pathsFrom(model: string, steps: number, isSorted: boolean): readonly (readonly string[])[] {
  const fields = Object.entries(SHAPES[model]?.fields ?? {}).filter(
    ([, shape]) => !isSorted || (typeof shape === 'object' ? shape.kind === 'one' : shape !== 'json'),
  )
  if (steps === 0) return fields.map(([name]) => [name])
  return fields.flatMap(([name, shape]) =>
    typeof shape === 'string'
      ? []
      : pathsFrom(shape.target, steps - 1, isSorted).map((rest) => [name, ...rest]),
  )
}

function endOf(model: string, [name = '', ...rest]: readonly string[]): [string, Shape, string] {
  const shape = SHAPES[model]?.fields[name]
  if (shape === undefined) throw new Error(`${model} has no ${name}`)
  return rest.length > 0 && typeof shape === 'object' ? endOf(shape.target, rest) : [model, shape, name]
}

/** Texts with wildcards around and inside, some escaped. */
function patternOf(value: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const wild = fc.constantFrom('', '', '%', '_', '\\%', '\\_', '\\\\', '\\')
  const part = value.map((each) => Array.from(String(each)))
  return fc
    .tuple(wild, part, fc.nat(4), wild, fc.nat(4), wild)
    .map(
      ([before, characters, from, between, to, after]) =>
        before + characters.slice(0, from).join('') + between + characters.slice(from, to).join('') + after,
    )
}

function countRelations(question: Question, sortBy: readonly string[]): number {
  const paths = [...sortBy.map((key) => key.replace(/^-/, '')), ...pathsIn(question)]
  const prefixes = paths.flatMap((path) =>
    path.split('.').map((_, end, names) => names.slice(0, end).join('.')),
  )
  return new Set([...prefixes, ...paths]).size
}

function pathsIn(question: Question): readonly string[] {
  return 'join' in question ? question.parts.flatMap(pathsIn) : [question.path]
}
