// Reads an OpenAPI document as a client would: operations with their references resolved, and validators of their schemas.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export interface Schema {
  readonly [key: string]: unknown
}

export interface MediaType {
  readonly schema: Schema
  readonly example?: unknown
}

export interface DocumentedAnswer {
  readonly description: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, MediaType>>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: Schema
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, MediaType>> }
  readonly responses: Readonly<Record<string, DocumentedAnswer>>
  readonly security?: readonly Schema[]
}

export interface Document {
  readonly openapi: string
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** One operation with its method and path. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const BASE = 'https://document.example/'
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** Checks formats and rejects unknown keywords. */
export function createAjv(checksSchemas = true): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    validateSchema: checksSchemas,
    strict: true,
    strictTypes: false,
    allowUnionTypes: true,
  })
  addFormats.default(ajv)
  // OpenAPI and code generators know these; JSON Schema has them as annotations.
  for (const format of ['int32', 'int64', 'password']) ajv.addFormat(format, true)
  return ajv
}

export class ApiDocument {
  readonly #ajv: Ajv2020
  readonly #validators = new Map<string, ValidateFunction>()
  #calls: readonly Call[] | undefined

  /** `checksSchemas` also compares each schema with the schema of JSON Schema, which takes seconds. */
  constructor(
    readonly document: Document,
    checksSchemas = false,
  ) {
    this.#ajv = createAjv(checksSchemas)
    const { schemas } = document.components
    this.#ajv.addSchema({ $id: BASE, $defs: withBase(schemas) as Schema })
  }

  /** All operations, in the order of the document. */
  get calls(): readonly Call[] {
    this.#calls ??= this.#listCalls()
    return this.#calls
  }

  #listCalls(): readonly Call[] {
    return Object.entries(this.document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => method in item).map((method) => ({
        method: method.toUpperCase(),
        path,
        operation: this.#resolveOperation(item, method),
      })),
    )
  }

  get schemaNames(): readonly string[] {
    return Object.keys(this.document.components['schemas'] ?? {})
  }

  find(operationId: string): Call {
    const call = this.calls.find(({ operation }) => operation.operationId === operationId)
    if (!call) throw new Error(`no operation ${operationId}`)
    return call
  }

  /** Returns a part of the document, by a reference such as `#/components/schemas/CrmContact`. */
  resolve(ref: string): unknown {
    return ref
      .slice(2)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<unknown>((value, part) => (value as Record<string, unknown> | undefined)?.[part], this.document)
  }

  /** All references of the document that lead nowhere. */
  get danglingRefs(): readonly string[] {
    return [...new Set(collectRefs(this.document))].filter((ref) => this.resolve(ref) === undefined)
  }

  /** Returns the errors of a value against a schema of the document. */
  validate(schema: Schema, value: unknown): readonly string[] {
    const key = JSON.stringify(schema)
    const validator = this.#validators.get(key) ?? this.#ajv.compile(withBase(schema) as Schema)
    this.#validators.set(key, validator)
    if (validator(value)) return []
    return (validator.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message ?? ''}`)
  }

  validateNamed(name: string, value: unknown): readonly string[] {
    return this.validate({ $ref: `#/components/schemas/${name}` }, value)
  }

  #resolveOperation(item: Readonly<Record<string, unknown>>, method: string): Operation {
    const operation = item[method] as Operation
    const all = [...((item['parameters'] ?? []) as readonly Parameter[]), ...(operation.parameters ?? [])]
    return {
      ...operation,
      parameters: all.map((each) => this.#follow(each)),
      ...(operation.requestBody ? { requestBody: this.#follow(operation.requestBody) } : {}),
      responses: Object.fromEntries(
        Object.entries(operation.responses).map(([status, answer]) => [status, this.#follow(answer)]),
      ),
    }
  }

  #follow<T>(part: T): T {
    const { $ref } = part as { readonly $ref?: string }
    return $ref === undefined ? part : (this.resolve($ref) as T)
  }
}

/** The validator knows the schemas of the document as `$defs` of one schema. */
function withBase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBase)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      key === '$ref' && typeof inner === 'string'
        ? [key, inner.replace('#/components/schemas/', `${BASE}#/$defs/`)]
        : [key, withBase(inner)],
    ),
  )
}

function collectRefs(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(collectRefs)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : collectRefs(inner),
  )
}
