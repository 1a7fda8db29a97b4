// Validates requests to routes below /ext by their schemas. Reports all errors of a body by field.
import { createRequire } from 'node:module'
import type AjvCompiler from '@fastify/ajv-compiler'
import type { FastifySchemaValidationError, FastifyServerOptions } from 'fastify'
import { describeThrown, ConfigError, VersoError } from '../../errors.js'
import { FieldErrors } from '../../model/definition/field-errors.js'
import { isObject } from '../../model/values/value.js'

/** The functions that Fastify calls for the schemas of a scope. */
export type SchemaCompilers = NonNullable<
  NonNullable<FastifyServerOptions['schemaController']>['compilersFactory']
>

/** The schema of one part of a request. */
interface SchemaPart {
  readonly schema: unknown
  readonly method?: string
  readonly url?: string
  readonly httpPart?: string
}

type SchemaCompiler = (part: SchemaPart) => SchemaValidator

interface SchemaValidator {
  (data: unknown): boolean
  /** Such a validator returns a promise. */
  readonly $async?: true
  errors?: readonly FastifySchemaValidationError[] | null
}

/** Counting all errors of a larger value could exhaust the memory, so only its first error is reported. */
const MAX_CHECKED_VALUES = 10_000
const MAX_PARAMETER_ERRORS = 10

const FASTIFY_OPTIONS = { useDefaults: true, removeAdditional: false } as const

export interface CheckedCompilers {
  readonly compilers: SchemaCompilers
  /** Throws one error with the problems of all schemas. Call it when the routes are complete. */
  readonly refuseInvalid: () => void
}

export function createSchemaCompilers(): CheckedCompilers {
  const problems: string[] = []
  const load = createRequire(import.meta.url)
  const createCompiler = load('@fastify/ajv-compiler') as typeof AjvCompiler
  const compilers = {
    /** `shared` has the schemas of `addSchema`. */
    buildValidator: (shared: Parameters<AjvCompiler.BuildCompilerFromPool>[0]) => {
      const build = createCompiler()
      const compilerOf = (options: object) =>
        refuseAsync(build(shared, { customOptions: options, onCreate: addKeywords }) as SchemaCompiler)
      const compileParameters = compilerOf({ ...FASTIFY_OPTIONS, coerceTypes: 'array', allErrors: true })
      const compileBody = compilerOf({ ...FASTIFY_OPTIONS, coerceTypes: false, allErrors: false })
      const compileWholeBody = compilerOf({ ...FASTIFY_OPTIONS, coerceTypes: false, allErrors: true })
      return (part: SchemaPart): SchemaValidator => {
        try {
          if (part.httpPart === 'body') return createBodyValidator(compileBody(part), compileWholeBody(part))
          return compileParameters(part.httpPart === 'headers' ? withLowerCaseNames(part) : part)
        } catch (error) {
          problems.push(describeSchemaProblem(part, error))
          return () => false
        }
      }
    },
    // The schemas of answers are for the API documents. The answer is sent as the handler returns it.
    buildSerializer: () => () => (value: unknown) => JSON.stringify(value),
  }
  return {
    compilers: compilers as unknown as SchemaCompilers,
    refuseInvalid: () => {
      if (problems.length > 0) throw new ConfigError('The routes cannot be served', [...new Set(problems)])
    },
  }
}

/** The promise of such a validator would count as a valid value. */
function refuseAsync(compile: SchemaCompiler): SchemaCompiler {
  return (part) => {
    const validator = compile(part)
    if (validator.$async) throw new Error('$async is not supported; check such values in the handler')
    return validator
  }
}

function describeSchemaProblem({ method, url, httpPart }: SchemaPart, error: unknown): string {
  return `${[method].flat().join(', ')} ${url ?? ''}: the schema of ${httpPart ?? 'the request'} is invalid: ${describeThrown(error)}`
}

/** Documents have examples in schemas. JSON Schema of this version knows only a list of them. */
function addKeywords(ajv: { addKeyword: (keyword: string) => unknown }): void {
  ajv.addKeyword('example')
}

/** Node has the names of headers in lower case. */
function withLowerCaseNames(part: SchemaPart): SchemaPart {
  const { schema } = part
  if (!isObject(schema)) return part
  const { properties, required } = schema
  return {
    ...part,
    schema: {
      ...schema,
      ...(isObject(properties)
        ? {
            properties: Object.fromEntries(
              Object.entries(properties).map(([name, value]) => [name.toLowerCase(), value]),
            ),
          }
        : {}),
      ...(Array.isArray(required) ? { required: required.map((name) => String(name).toLowerCase()) } : {}),
    },
  }
}

/** Stops at the first error, and looks for all errors of a body that is not large. */
function createBodyValidator(check: SchemaValidator, checkWhole: SchemaValidator): SchemaValidator {
  const validator: SchemaValidator = (data) => {
    if (check(data)) return true
    const thorough = isSmall(data) && !checkWhole(data) ? checkWhole : check
    validator.errors = thorough.errors ?? []
    return false
  }
  return validator
}

/** Visits the values level by level, because recursion could exhaust the stack. */
function isSmall(data: unknown): boolean {
  let count = 0
  let level: unknown[] = [data]
  while (level.length > 0) {
    const next: unknown[] = []
    for (const value of level) {
      if (typeof value !== 'object' || value === null) continue
      const children: unknown[] = Object.values(value)
      count += children.length
      if (count > MAX_CHECKED_VALUES) return false
      for (const child of children) next.push(child)
    }
    level = next
  }
  return true
}

const PARAMETER_NOUNS: Readonly<Record<string, string>> = {
  querystring: 'the query parameter',
  params: 'the path parameter',
  headers: 'the header',
}

/** Turns the errors of a part of a request into the error that the client gets. */
export function formatSchemaErrors(
  errors: readonly FastifySchemaValidationError[],
  part: string,
): VersoError {
  if (part === 'body') {
    const fields = new FieldErrors()
    for (const error of errors) fields.add(findErrorPath(error) || 'body', describeSchemaError(error))
    return fields.toError()
  }
  const noun = PARAMETER_NOUNS[part] ?? part
  const texts = errors.map((error) => `${noun} ${findErrorPath(error)} ${describeSchemaError(error)}`)
  const shown = [...new Set(texts)].slice(0, MAX_PARAMETER_ERRORS).join('; ')
  return new VersoError('bad-request', `${shown.charAt(0).toUpperCase()}${shown.slice(1)}`)
}

/** Returns the path as in errors of records: `lines[0].amount`. */
function findErrorPath({ instancePath, params }: FastifySchemaValidationError): string {
  const { missingProperty, additionalProperty } = params
  const parts = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = missingProperty ?? additionalProperty
  if (typeof last === 'string') parts.push(last)
  return parts.reduce((path, part) => {
    if (/^\d+$/.test(part)) return `${path}[${part}]`
    return path === '' ? part : `${path}.${part}`
  }, '')
}

function describeSchemaError({ keyword, message }: FastifySchemaValidationError): string {
  if (keyword === 'required') return 'is required'
  if (keyword === 'additionalProperties') return 'is unknown'
  return message ?? 'is invalid'
}
