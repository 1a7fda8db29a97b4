// Reads the description of a model back, as a service sends it, and asks it what the types of records need to know.
import type { ModelDescription } from './model-description.js'
import { isObject, type JsonObject } from '../model/values/value.js'

const RELATION_TYPES: readonly string[] = ['MANY_TO_ONE', 'ONE_TO_ONE', 'ONE_TO_MANY', 'MANY_TO_MANY']
const LIST_TYPES: readonly string[] = ['ONE_TO_MANY', 'MANY_TO_MANY']
const NUMBER_TYPES: readonly string[] = ['INTEGER', 'LONG']

/** A field as the description of a model has it. */
export class DescribedField {
  readonly name: string
  readonly type: string
  readonly title: string
  readonly help: string
  /** The name of the related model; undefined if the field is no relation. */
  readonly target: string | undefined

  constructor(private readonly description: JsonObject) {
    this.name = String(description['name'])
    this.type = String(description['type'])
    this.title = readText(description['title'])
    this.help = readText(description['help'])
    this.target = RELATION_TYPES.includes(this.type) ? readText(description['target']) : undefined
  }

  #is(property: string): boolean {
    return this.description[property] === true
  }

  get isList(): boolean {
    return LIST_TYPES.includes(this.type)
  }

  get isFile(): boolean {
    return this.type === 'BINARY'
  }

  get isJson(): boolean {
    return this.#is('json')
  }

  get isDecimal(): boolean {
    return this.type === 'DECIMAL'
  }

  get isNumber(): boolean {
    return NUMBER_TYPES.includes(this.type)
  }

  /** An answer may contain the field, if only when the request selects it. */
  get isReadable(): boolean {
    return !this.isFile && !this.#is('hidden') && !this.#is('writeOnly')
  }

  /** A full record contains the field. */
  get isReadByDefault(): boolean {
    return this.isReadable && !this.#is('view')
  }

  /** Some records omit the field, because the user may not read it there. */
  get isMasked(): boolean {
    return this.#is('masked')
  }

  /** A client may send the field. */
  get isWritable(): boolean {
    return !this.#is('readonly') && !this.isFile && !this.#is('view')
  }

  /** A full record has a value other than null. */
  get isNeverNull(): boolean {
    if (this.#is('nullable')) return false
    return this.#is('required') || this.isList || ['id', 'version', 'createdOn'].includes(this.name)
  }

  /** A write must not contain null. */
  get refusesNull(): boolean {
    return this.#is('required') || this.isList
  }

  /** A create must contain the field. */
  get isRequiredInCreate(): boolean {
    const hasDefault =
      this.description['defaultValue'] !== undefined || this.#is('defaultNow') || this.#is('hasDefault')
    return this.isWritable && this.#is('required') && !hasDefault
  }

  get isNameField(): boolean {
    return this.#is('nameColumn')
  }

  /** The values of a selection, in their order; undefined if the field has none. */
  get choices(): readonly (string | number)[] | undefined {
    const list = this.description['selectionList']
    if (!Array.isArray(list) || list.length === 0) return undefined
    const values = list.filter(isObject).map(({ value }) => String(value))
    return this.isNumber ? values.map(Number) : values
  }
}

/** The fields that a find returns by default. Other services do not list them. */
export function readListFields(
  description: Pick<ModelDescription, 'listFields'>,
  fields: readonly DescribedField[],
): readonly string[] {
  const names: unknown = description.listFields
  if (Array.isArray(names)) return names.map(String)
  return fields.filter((field) => field.isReadByDefault && !field.isList).map(({ name }) => name)
}

/** Returns undefined if it is not a description. */
export function parseDescription(value: unknown): ModelDescription | undefined {
  if (!isObject(value) || typeof value['model'] !== 'string' || !Array.isArray(value['fields']))
    return undefined
  return value as unknown as ModelDescription
}

function readText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
