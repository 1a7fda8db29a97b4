// Parses the body of a batch into requests. Reports all errors of their shape at once.
import { VersoError } from '../../errors.js'
import { didYouMean } from '../values/did-you-mean.js'
import { isRef, isRefName } from './refs.js'
import { isId, isObject, isVersion, type JsonObject } from '../values/value.js'

/** A batch is one transaction, and other writes wait until it ends. */
export const MAX_BATCH_REQUESTS = 1_000
const MAX_BATCH_ERRORS = 100
const MAX_QUOTED_CHARACTERS = 100

/** A stored record by id, or a record that an earlier request creates by ref. */
export type BatchTarget = number | { readonly $ref: string }

interface ModelRequest {
  readonly model: string
}

export interface CreateRequest extends ModelRequest {
  readonly op: 'create'
  readonly data: JsonObject
  /** A name by which later requests refer to the record. */
  readonly ref: string | undefined
}

export interface UpdateRequest extends ModelRequest {
  readonly op: 'update'
  readonly id: BatchTarget
  readonly version: number
  readonly data: JsonObject
}

export interface DeleteRequest extends ModelRequest {
  readonly op: 'delete'
  readonly id: BatchTarget
  readonly version: number | undefined
}

/** Checks that the record is at this version when the batch commits. Writes nothing. */
export interface AssertRequest extends ModelRequest {
  readonly op: 'assert'
  readonly id: BatchTarget
  readonly version: number
}

export type BatchRequest = CreateRequest | UpdateRequest | DeleteRequest | AssertRequest

type BatchOperation = BatchRequest['op']

const COMMON_KEYS = ['op', 'model']
/** The keys of each operation besides the common ones. */
const OPERATION_KEYS: Readonly<Record<BatchOperation, readonly string[]>> = {
  create: ['data', 'ref'],
  update: ['id', 'version', 'data'],
  delete: ['id', 'version'],
  assert: ['id', 'version'],
}
const OPERATIONS = Object.keys(OPERATION_KEYS) as BatchOperation[]
const REQUEST_KEYS = [...new Set([...COMMON_KEYS, ...Object.values(OPERATION_KEYS).flat()])]

export function readBatch(requests: unknown): readonly BatchRequest[] {
  if (!Array.isArray(requests) || requests.length === 0)
    throw new VersoError('bad-request', '"requests" must be a list of at least one request')
  if (requests.length > MAX_BATCH_REQUESTS)
    throw new VersoError(
      'bad-request',
      `A batch can have at most ${MAX_BATCH_REQUESTS} requests; nothing was changed`,
    )
  const reader = new BatchReader()
  const read = requests.map((request, index) => reader.read(request, index))
  reader.refuseIfAny()
  return read.filter((request) => request !== undefined)
}

/** Returns the index of the request in a path such as `requests[2].email`. */
export function parseRequestIndex(path: string | undefined): number | undefined {
  const index = /^requests\[(\d+)\]/.exec(path ?? '')?.[1]
  return index === undefined ? undefined : Number(index)
}

export function formatRequestPath(index: number): string {
  return `requests[${index}].`
}

interface RefState {
  readonly index: number
  readonly model: string
  removedBy: number | undefined
}

class BatchReader {
  readonly #errors = new Map<string, string>()
  /** The requests that create and delete each record with a ref. */
  readonly #refs = new Map<string, RefState>()
  /** The index of the request for each stored record. */
  readonly #targets = new Map<string, number>()

  read(request: unknown, index: number): BatchRequest | undefined {
    const path = `requests[${index}]`
    if (!isObject(request)) {
      this.#addError(path, 'must be an object such as { "op": "create", … }')
      return undefined
    }
    const { model: name } = request
    const op = OPERATIONS.find((each) => each === request['op'])
    const model = typeof name === 'string' && name !== '' ? name : undefined
    this.#require(op, `${path}.op`, `must be one of ${OPERATIONS.join(', ')}`)
    this.#require(model, `${path}.model`, 'must be the name of a model')
    this.#checkKeys(request, op, path)
    if (op === undefined) return undefined
    const read = this.#readOperation(op, model ?? '', request, index)
    if (model !== undefined && read && 'id' in read) this.#checkTarget(read, index)
    return read
  }

  refuseIfAny(): void {
    if (this.#errors.size === 0) return
    const named = [...this.#errors].slice(0, MAX_BATCH_ERRORS)
    const list = named.slice(0, 5).map(([path, message]) => `${path} ${message}`)
    const more = this.#errors.size > list.length ? ` and ${this.#errors.size - list.length} more` : ''
    throw new VersoError('bad-request', `Nothing was written: ${list.join('; ')}${more}`, {
      errors: Object.fromEntries(named),
      data: { index: parseRequestIndex(named[0]?.[0]) },
    })
  }

  #readOperation(
    op: BatchOperation,
    model: string,
    request: JsonObject,
    index: number,
  ): BatchRequest | undefined {
    const path = `requests[${index}]`
    if (op === 'create') {
      const data = this.#readData(request, path)
      const ref = this.#readRef(request, model, index)
      if (data) this.#checkNewRecordKeys(data, path)
      return data && { op, model, data, ref }
    }
    const id = this.#readId(request, path)
    if (op === 'update') {
      const data = this.#readData(request, path)
      const version = data && this.#readUpdateVersion(request, data, id, path)
      return data && id !== undefined && version !== undefined ? { op, model, id, version, data } : undefined
    }
    const isNeeded = op === 'assert' && (request['version'] ?? null) === null
    const version = this.#readVersion(request, `${path}.version`)
    if (isNeeded) this.#addError(`${path}.version`, 'is required: the version that the record must have')
    if (id === undefined) return undefined
    if (op === 'delete') return { op, model, id, version }
    return version === undefined ? undefined : { op, model, id, version }
  }

  /** Rejects unknown keys. If they were ignored, a misspelled `version` would disable the version check. */
  #checkKeys(request: JsonObject, op: BatchOperation | undefined, path: string): void {
    for (const [key, value] of Object.entries(request)) {
      const at = `${path}.${key.slice(0, MAX_QUOTED_CHARACTERS)}`
      const isTaken = !op || [...COMMON_KEYS, ...OPERATION_KEYS[op]].some((each) => each === key)
      if (!REQUEST_KEYS.includes(key))
        this.#addError(
          at,
          `is not a key of a request${this.#hasManyErrors ? '' : didYouMean(key, REQUEST_KEYS)}`,
        )
      else if (!isTaken && (value ?? null) !== null) this.#addError(at, `is not allowed for ${op}`)
    }
  }

  #readData({ data }: JsonObject, path: string): JsonObject | undefined {
    return this.#require(isObject(data) ? data : undefined, `${path}.data`, 'must be an object of fields')
  }

  #readRef({ ref = null }: JsonObject, model: string, index: number): string | undefined {
    if (ref === null) return undefined
    const path = `requests[${index}].ref`
    if (!isRefName(ref)) {
      this.#addError(path, 'must be 1 to 64 letters, digits, "_", "." or "-"')
      return undefined
    }
    const other = this.#refs.get(ref)
    if (other === undefined) this.#refs.set(ref, { index, model, removedBy: undefined })
    else this.#addError(path, `is already the ref of requests[${other.index}]`)
    return ref
  }

  #checkNewRecordKeys(data: JsonObject, path: string): void {
    for (const key of ['id', 'version'])
      if ((data[key] ?? null) !== null)
        this.#addError(`${path}.data.${key}`, 'must be omitted: a new record does not have it yet')
  }

  #readId({ id = null }: JsonObject, path: string): BatchTarget | undefined {
    if (!isRef(id))
      return this.#require(isId(id) ? id : undefined, `${path}.id`, 'must be a whole number from 1')
    const { $ref: ref, ...rest } = id
    if (isRefName(ref) && Object.keys(rest).length === 0) return { $ref: ref }
    this.#addError(`${path}.id`, 'must be a whole number from 1, or a reference such as { "$ref": "a" }')
    return undefined
  }

  #readVersion({ version = null }: JsonObject, path: string): number | undefined {
    if (version === null) return undefined
    return this.#require(isVersion(version) ? version : undefined, path, 'must be a whole number from 0')
  }

  /** `data` may contain id and version, too, as in an update of one record. */
  #readUpdateVersion(
    request: JsonObject,
    data: JsonObject,
    id: BatchTarget | undefined,
    path: string,
  ): number | undefined {
    const { id: sentId = null } = data
    if (sentId !== null && id !== undefined && !isSameTarget(sentId, id))
      this.#addError(`${path}.data.id`, `must be the id of the request, ${JSON.stringify(id)}`)
    if ([request, data].every(({ version = null }) => version === null))
      this.#addError(`${path}.version`, 'is required: the version that the update is based on')
    const outside = this.#readVersion(request, `${path}.version`)
    const inside = this.#readVersion(data, `${path}.data.version`)
    if (outside !== undefined && inside !== undefined && outside !== inside)
      this.#addError(`${path}.data.version`, `must be the version of the request, ${outside}`)
    return outside ?? inside
  }

  #checkTarget(request: Exclude<BatchRequest, CreateRequest>, index: number): void {
    const { model, id } = request
    if (typeof id === 'number') this.#checkTargetOnce(`${model} ${id}`, index)
    else this.#checkRef(request, id.$ref, index)
  }

  /** Requests may refer to a record of this batch any number of times until one deletes it. */
  #checkRef({ op, model }: BatchRequest, ref: string, index: number): void {
    const path = `requests[${index}].id`
    const state = this.#refs.get(ref)
    if (!state) this.#addError(path, `refers to "${ref}", which is not the ref of an earlier request`)
    else if (state.model !== model)
      this.#addError(
        path,
        `refers to "${ref}", but requests[${state.index}] creates a record of another model`,
      )
    else if (state.removedBy !== undefined)
      this.#addError(path, `refers to "${ref}", which requests[${state.removedBy}] deletes`)
    else if (op === 'delete') state.removedBy = index
  }

  #checkTargetOnce(name: string, index: number): void {
    const other = this.#targets.get(name)
    if (other === undefined) this.#targets.set(name, index)
    else
      this.#addError(
        `requests[${index}].id`,
        `names ${name.slice(0, MAX_QUOTED_CHARACTERS)}, which requests[${other}] already names: name each record once`,
      )
  }

  /** Returns the value. Adds an error if it is undefined. */
  #require<T>(value: T | undefined, path: string, message: string): T | undefined {
    if (value === undefined) this.#addError(path, message)
    return value
  }

  #addError(path: string, message: string): void {
    if (!this.#errors.has(path)) this.#errors.set(path, message)
  }

  /** True once the response lists no further errors, so suggestions can be skipped. */
  get #hasManyErrors(): boolean {
    return this.#errors.size >= MAX_BATCH_ERRORS
  }
}

function isSameTarget(sent: unknown, id: BatchTarget): boolean {
  return typeof id === 'number' ? sent === id : isRef(sent) && sent.$ref === id.$ref
}
