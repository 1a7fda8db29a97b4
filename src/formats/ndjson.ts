// Formats records as NDJSON lines, and parses lines with the same checks as a save.
import { VersoError } from '../errors.js'
import type { Field } from '../model/values/field.js'
import { deriveFileValues, type FileMetadata } from '../model/catalog/file-metadata.js'
import type { Model } from '../model/definition/model.js'
import { didYouMean, shortenForMessage } from '../model/values/did-you-mean.js'
import {
  isFileField,
  isOwnLink,
  isUserReference,
  listTransferFields,
  listUsernames,
} from './transfer-fields.js'
import { fillMissing, createFieldParser, type ReportLineError } from './ndjson-field.js'
import {
  getReferenceId,
  isId,
  isObject,
  isVersion,
  type Value,
  type Values,
  type JsonObject,
} from '../model/values/value.js'
import { computeValues } from '../model/definition/record-values.js'

/** Prints the keys in the order of the model, so that equal records give equal lines. */
export function formatLine(fields: readonly Field[], record: JsonObject): string {
  return JSON.stringify(toLine(fields, record))
}

/** Converts a record that was read with `selectTransferFields` to the content of its line. */
export function toLine(fields: readonly Field[], record: JsonObject): JsonObject {
  const line: Record<string, unknown> = { id: record['id'], version: record['version'] }
  for (const field of fields) {
    const value = record[field.name] ?? null
    const isPlain = value === null || !field.relation || isOwnLink(field)
    line[field.name] = isPlain
      ? toLinkValue(field, value)
      : isUserReference(field)
        ? { username: value }
        : { id: value }
  }
  return line
}

function toLinkValue(field: Field, value: unknown): unknown {
  if (!isUserReference(field) || !Array.isArray(value)) return value
  return listUsernames(value).map((username) => ({ username }))
}

/** A parsed line. References to users are `{username}` until `resolveUsers` replaces them. */
export interface ImportLine {
  /** Undefined if the service assigns the id. */
  readonly id: number | undefined
  readonly version: number
  readonly values: Values
  /** The keys of the line. */
  readonly keys: readonly string[]
}

const LINE_KEYS: readonly string[] = ['id', 'version']
/** Later ids and versions continue from the imported ones. This leaves them half of the range of exact integers. */
const MAX_IMPORTED_NUMBER = 2 ** 52

/** Parses the lines of one model. */
export class LineReader {
  readonly #fields: readonly Field[]
  readonly #references: readonly Field[]
  readonly #users: readonly Field[]
  readonly #files: readonly Field[]
  readonly #known: ReadonlySet<string>
  readonly #hasComputedFields: boolean
  readonly #parsers: readonly {
    readonly field: Field
    readonly parse: ReturnType<typeof createFieldParser>
  }[]

  constructor(readonly model: Model) {
    this.#fields = listTransferFields(model).filter((field) => !field.computed)
    this.#parsers = this.#fields.map((field) => ({ field, parse: createFieldParser(field) }))
    this.#references = this.#fields.filter((field) => field.relation && !isUserReference(field))
    this.#users = this.#fields.filter(isUserReference)
    this.#files = this.#fields.filter(isFileField)
    this.#known = new Set([...LINE_KEYS, ...listTransferFields(model).map(({ name }) => name)])
    this.#hasComputedFields = [...model.fields.values()].some((field) => field.computed)
  }

  /** Returns error messages if no record of this model can be imported. */
  listObstacles(): string[] {
    const secrets = [...this.model.fields.values()].filter((field) => field.secret && field.required)
    return secrets.map(
      ({ name }) => `${this.model.name}.${name} is secret and required, so its records cannot be imported`,
    )
  }

  hasKey(key: string): boolean {
    return this.#known.has(key)
  }

  reportUnknownKeys(keys: readonly string[], report: ReportLineError): void {
    for (const key of keys) {
      if (this.hasKey(key)) continue
      const field = this.model.fields.get(key)
      if (!field)
        report(shortenForMessage(key), `is not a field of ${this.model.name}${this.#suggestKey(key)}`)
      else if (field.secret) report(key, 'is secret and cannot be imported: omit it')
      else report(key, describeInverseField(field))
    }
  }

  /** Returns undefined if it reported errors. */
  read(input: unknown, now: string, report: ReportLineError): ImportLine | undefined {
    if (!isObject(input)) {
      report('', 'must be a JSON object')
      return undefined
    }
    const errors = { count: 0 }
    const reportError: ReportLineError = (path, error) => {
      errors.count++
      report(path, error)
    }
    const { id = null, version = null } = input
    if (id !== null && !isId(id)) reportError('id', 'must be a whole number from 1')
    if (version !== null && !isVersion(version)) reportError('version', 'must be a whole number from 0')
    if (isTooLargeNumber(id)) reportError('id', `must be at most ${MAX_IMPORTED_NUMBER}`)
    if (isTooLargeNumber(version)) reportError('version', `must be at most ${MAX_IMPORTED_NUMBER}`)
    if (id === null && version !== null && version !== 0)
      reportError('version', 'must be 0 if there is no id')
    const keys = Object.keys(input)
    this.reportUnknownKeys(keys, reportError)
    const values: Values = {}
    for (const { field, parse } of this.#parsers) {
      const value = input[field.name] ?? null
      values[field.name] =
        value === null ? fillMissing(field, input[field.name], now, reportError) : parse(value, reportError)
    }
    if (errors.count === 0) this.#checkContentFields(values, keys, reportError)
    if (errors.count === 0 && this.#hasComputedFields) this.#compute(values, reportError)
    if (errors.count > 0) return undefined
    return { id: id === null ? undefined : Number(id), version: Number(version ?? 0), values, keys }
  }

  /** Visits each record that a line refers to, except users. */
  forEachReference(line: ImportLine, visit: (field: Field, id: number) => void): void {
    for (const field of this.#references) {
      const value = line.values[field.name] ?? null
      if (Array.isArray(value))
        for (const reference of value as Value[]) visit(field, getReferenceId(reference))
      else if (value !== null) visit(field, getReferenceId(value))
    }
  }

  forEachUser(line: ImportLine, visit: (username: string) => void): void {
    for (const field of this.#users) {
      const value = line.values[field.name] ?? null
      if (Array.isArray(value)) for (const item of value) visit((item as { username: string }).username)
      else if (value !== null) visit((value as { readonly username: string }).username)
    }
  }

  /** True if the model has a binary field. */
  get hasFiles(): boolean {
    return this.#files.length > 0
  }

  listFiles({ values }: ImportLine): { readonly field: Field; readonly facts: FileMetadata }[] {
    if (!this.hasFiles) return []
    return this.#files.flatMap((field) => {
      const facts = (values[field.name] ?? null) as FileMetadata | null
      return facts === null ? [] : [{ field, facts }]
    })
  }

  /** Replaces user names with the ids of this database. */
  resolveUsers(line: ImportLine, findUserId: (username: string) => number): Values {
    if (!this.#users.some(({ name }) => (line.values[name] ?? null) !== null)) return line.values
    const known = (value: Value): Value =>
      value === null ? null : { id: findUserId((value as { readonly username: string }).username) }
    const values = { ...line.values }
    for (const { name } of this.#users) {
      const value = values[name] ?? null
      values[name] = Array.isArray(value)
        ? removeDuplicateIds(value.map((item: Value) => known(item)))
        : known(value)
    }
    return values
  }

  /** The system fields of a MetaFile must match the metadata of its content. */
  #checkContentFields(values: Values, keys: readonly string[], report: ReportLineError): void {
    const [file] = this.#files
    if (!file) return
    const facts = (values[file.name] ?? undefined) as FileMetadata | undefined
    for (const [name, value] of Object.entries(deriveFileValues(this.model, facts))) {
      if (keys.includes(name) && values[name] !== value)
        report(name, `must be ${JSON.stringify(value)}, as in ${file.name}`)
      values[name] = value
    }
  }

  #suggestKey(key: string): string {
    return didYouMean(key, [...LINE_KEYS, ...this.#fields.map(({ name }) => name)])
  }

  #compute(values: Values, report: ReportLineError): void {
    try {
      Object.assign(values, computeValues(this.model, values))
    } catch (error) {
      if (!(error instanceof VersoError)) throw error
      for (const [name, message] of Object.entries(error.details.errors ?? {})) report(name, message)
    }
  }
}

/** Removes duplicates: two spellings of a user name may resolve to the same user. */
function removeDuplicateIds(members: readonly Value[]): Value {
  return [
    ...new Map(members.map((member) => [(member as { readonly id: number }).id, member])).values(),
  ] as Value
}

function isTooLargeNumber(number: unknown): boolean {
  return Number.isSafeInteger(number) && Number(number) > MAX_IMPORTED_NUMBER
}

function describeInverseField({ relation }: Field): string {
  return `follows from ${relation?.target ?? ''}.${relation?.mappedBy ?? ''}: omit it`
}
