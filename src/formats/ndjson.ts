// A record as a line of a file, and a line as the values of a record: checked by the rules of a save.
import { Refusal } from '../errors.js'
import type { Field } from '../model/values/field-types.js'
import { aboutContent, type FileFacts } from '../model/catalog/file-facts.js'
import type { Model } from '../model/definition/model.js'
import { didYouMean } from '../model/values/did-you-mean.js'
import { isFile, isLink, isUser, transferFields, usernamesIn } from './transfer-fields.js'
import { missing, parserOf, type Report } from './ndjson-field.js'
import { idOf, isId, isObject, isVersion, type Value, type Values } from '../model/values/value.js'
import { computeValues } from '../model/definition/record-values.js'

/** One JSON text: keys in the order of the model, so that the same record is the same line everywhere. */
export function printLine(fields: readonly Field[], record: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(lineOf(fields, record))
}

/** A record as `transferSelection` shows it → what its line says. */
export function lineOf(
  fields: readonly Field[],
  record: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const line: Record<string, unknown> = { id: record['id'], version: record['version'] }
  for (const field of fields) {
    const value = record[field.name] ?? null
    const isPlain = value === null || !field.relation || isLink(field)
    line[field.name] = isPlain ? linkOf(field, value) : isUser(field) ? { username: value } : { id: value }
  }
  return line
}

function linkOf(field: Field, value: unknown): unknown {
  if (!isUser(field) || !Array.isArray(value)) return value
  return usernamesIn(value).map((username) => ({ username }))
}

/** A line that was understood. Users stand in it by their names until they are known: `{username}`. */
export interface Line {
  /** Undefined: the service gives one. */
  readonly id: number | undefined
  readonly version: number
  readonly values: Values
  /** The keys that it had. */
  readonly given: readonly string[]
}

const KEYS: readonly string[] = ['id', 'version']
/** Ids and versions go on after those that come, and must stay exact: half of the numbers that do are left for them. */
const GREATEST = 2 ** 52

/** Reads the lines of one model. */
export class LineReader {
  readonly #fields: readonly Field[]
  readonly #references: readonly Field[]
  readonly #users: readonly Field[]
  readonly #files: readonly Field[]
  readonly #known: ReadonlySet<string>
  readonly #isComputing: boolean
  readonly #parsers: readonly { readonly field: Field; readonly parse: ReturnType<typeof parserOf> }[]

  constructor(readonly model: Model) {
    this.#fields = transferFields(model).filter((field) => !field.computed)
    this.#parsers = this.#fields.map((field) => ({ field, parse: parserOf(field) }))
    this.#references = this.#fields.filter((field) => field.relation && !isUser(field))
    this.#users = this.#fields.filter(isUser)
    this.#files = this.#fields.filter(isFile)
    this.#known = new Set([...KEYS, ...transferFields(model).map(({ name }) => name)])
    this.#isComputing = [...model.fields.values()].some((field) => field.computed)
  }

  /** What keeps every record of this model from being imported. */
  obstacles(): string[] {
    const secrets = [...this.model.fields.values()].filter((field) => field.secret && field.required)
    return secrets.map(
      ({ name }) => `${this.model.name}.${name} is secret and required: its records cannot come from a file`,
    )
  }

  /** Whether a line may have this key. */
  knows(key: string): boolean {
    return this.#known.has(key)
  }

  /** What is wrong with the keys of a line. */
  refuseStrangers(given: readonly string[], complain: Report): void {
    for (const key of given) {
      if (this.knows(key)) continue
      const field = this.model.fields.get(key)
      if (!field) complain(key.slice(0, 100), `is no field of ${this.model.name}${this.#meant(key)}`)
      else if (field.secret) complain(key, 'is secret: it does not travel in files')
      else complain(key, followsFrom(field))
    }
  }

  /** Undefined if anything was reported. */
  read(input: unknown, now: string, report: Report): Line | undefined {
    if (!isObject(input)) {
      report('', 'must be a JSON object')
      return undefined
    }
    const faults = { count: 0 }
    const complain: Report = (place, fault) => {
      faults.count++
      report(place, fault)
    }
    const { id = null, version = null } = input
    if (id !== null && !isId(id)) complain('id', 'must be a whole number from 1')
    if (version !== null && !isVersion(version)) complain('version', 'must be a whole number from 0')
    if (isTooGreat(id)) complain('id', 'leaves no room for later ones')
    if (isTooGreat(version)) complain('version', 'leaves no room for later ones')
    if (id === null && version !== null && version !== 0)
      complain('version', 'must be 0 where there is no id')
    const given = Object.keys(input)
    this.refuseStrangers(given, complain)
    const values: Values = {}
    for (const { field, parse } of this.#parsers) {
      const value = input[field.name] ?? null
      values[field.name] =
        value === null ? missing(field, input[field.name], now, complain) : parse(value, complain)
    }
    if (faults.count === 0) this.#followContent(values, given, complain)
    if (faults.count === 0 && this.#isComputing) this.#compute(values, complain)
    if (faults.count > 0) return undefined
    return { id: id === null ? undefined : Number(id), version: Number(version ?? 0), values, given }
  }

  /** Each record that a line refers to, besides users. */
  forEachReference(line: Line, visit: (field: Field, id: number) => void): void {
    for (const field of this.#references) {
      const value = line.values[field.name] ?? null
      if (Array.isArray(value)) for (const reference of value as Value[]) visit(field, idOf(reference))
      else if (value !== null) visit(field, idOf(value))
    }
  }

  forEachUser(line: Line, visit: (username: string) => void): void {
    for (const field of this.#users) {
      const value = line.values[field.name] ?? null
      if (Array.isArray(value)) for (const item of value) visit((item as { username: string }).username)
      else if (value !== null) visit((value as { readonly username: string }).username)
    }
  }

  /** Whether a line may name contents. */
  get hasFiles(): boolean {
    return this.#files.length > 0
  }

  filesIn({ values }: Line): { readonly field: Field; readonly facts: FileFacts }[] {
    if (!this.hasFiles) return []
    return this.#files.flatMap((field) => {
      const facts = (values[field.name] ?? null) as FileFacts | null
      return facts === null ? [] : [{ field, facts }]
    })
  }

  /** Users by their ids in this database. */
  withUsers(line: Line, idOf: (username: string) => number): Values {
    if (!this.#users.some(({ name }) => (line.values[name] ?? null) !== null)) return line.values
    const known = (value: Value): Value =>
      value === null ? null : { id: idOf((value as { readonly username: string }).username) }
    const values = { ...line.values }
    for (const { name } of this.#users) {
      const value = values[name] ?? null
      values[name] = Array.isArray(value)
        ? distinctIds(value.map((item: Value) => known(item)))
        : known(value)
    }
    return values
  }

  /** What a file that stands for itself says of its content must be true. */
  #followContent(values: Values, given: readonly string[], complain: Report): void {
    const [file] = this.#files
    if (!file) return
    const facts = (values[file.name] ?? undefined) as FileFacts | undefined
    for (const [name, value] of Object.entries(aboutContent(this.model, facts))) {
      if (given.includes(name) && values[name] !== value)
        complain(name, `must be ${JSON.stringify(value)}, as ${file.name} says`)
      values[name] = value
    }
  }

  #meant(key: string): string {
    return didYouMean(key, [...KEYS, ...this.#fields.map(({ name }) => name)])
  }

  #compute(values: Values, complain: Report): void {
    try {
      Object.assign(values, computeValues(this.model, values))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      for (const [name, fault] of Object.entries(error.details.errors ?? {})) complain(name, fault)
    }
  }
}

/** Two spellings of a name may lead to one user. */
function distinctIds(members: readonly Value[]): Value {
  return [
    ...new Map(members.map((member) => [(member as { readonly id: number }).id, member])).values(),
  ] as Value
}

function isTooGreat(number: unknown): boolean {
  return Number.isSafeInteger(number) && Number(number) > GREATEST
}

function followsFrom({ relation }: Field): string {
  return `follows from ${relation?.target ?? ''}.${relation?.mappedBy ?? ''}: leave it out`
}
