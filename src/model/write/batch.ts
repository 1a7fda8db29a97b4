// A batch as it is sent → its requests, or one Refusal that names every fault of their shape.
import { Refusal } from '../../errors.js'
import { didYouMean } from '../values/did-you-mean.js'
import { isRef, isRefName } from './refs.js'
import { isId, isObject, isVersion } from '../values/value.js'

/** They are one transaction, and others wait for its end. */
export const MAX_REQUESTS = 1_000
const MAX_NAMED_FAULTS = 100
const MAX_WORD = 100

type Data = Readonly<Record<string, unknown>>

/** A record that is there by its id, one that an earlier request makes by its ref. */
export type Named = number | { readonly $ref: string }

interface OfModel {
  readonly model: string
}

export interface CreateRequest extends OfModel {
  readonly op: 'create'
  readonly data: Data
  /** What later requests call the record by. */
  readonly ref: string | undefined
}

export interface UpdateRequest extends OfModel {
  readonly op: 'update'
  readonly id: Named
  readonly version: number
  readonly data: Data
}

export interface DeleteRequest extends OfModel {
  readonly op: 'delete'
  readonly id: Named
  readonly version: number | undefined
}

/** The record is only read, and must be at this version when all else is committed. */
export interface AssertRequest extends OfModel {
  readonly op: 'assert'
  readonly id: Named
  readonly version: number
}

export type BatchRequest = CreateRequest | UpdateRequest | DeleteRequest | AssertRequest

type Operation = BatchRequest['op']

const FOR_ALL = ['op', 'model']
/** What each takes besides. */
const TAKES: Readonly<Record<Operation, readonly string[]>> = {
  create: ['data', 'ref'],
  update: ['id', 'version', 'data'],
  delete: ['id', 'version'],
  assert: ['id', 'version'],
}
const OPERATIONS = Object.keys(TAKES) as Operation[]
const KEYS = [...new Set([...FOR_ALL, ...Object.values(TAKES).flat()])]

export function readBatch(requests: unknown): readonly BatchRequest[] {
  if (!Array.isArray(requests) || requests.length === 0)
    throw new Refusal('bad-request', '"requests" must be a list, with one request at least')
  if (requests.length > MAX_REQUESTS)
    throw new Refusal('bad-request', `At most ${MAX_REQUESTS} requests can be sent in a batch`)
  const reader = new BatchReader()
  const read = requests.map((request, index) => reader.read(request, index))
  reader.refuseIfAny()
  return read.filter((request) => request !== undefined)
}

/** The number of the request that a place such as `requests[2].email` is in. */
export function indexOfPlace(place: string | undefined): number | undefined {
  const index = /^requests\[(\d+)\]/.exec(place ?? '')?.[1]
  return index === undefined ? undefined : Number(index)
}

export function placeOf(index: number): string {
  return `requests[${index}].`
}

interface Made {
  readonly index: number
  readonly model: string
  removedBy: number | undefined
}

class BatchReader {
  readonly #faults = new Map<string, string>()
  /** What has a ref, and the requests that make and remove it. */
  readonly #refs = new Map<string, Made>()
  /** The requests that name a record. */
  readonly #named = new Map<string, number>()

  read(request: unknown, index: number): BatchRequest | undefined {
    const place = `requests[${index}]`
    if (!isObject(request)) {
      this.#fault(place, 'must be an object such as { "op": "create", … }')
      return undefined
    }
    const { model: name } = request
    const op = OPERATIONS.find((each) => each === request['op'])
    const model = typeof name === 'string' && name !== '' ? name : undefined
    this.#need(op, `${place}.op`, `must be ${OPERATIONS.join(', ')}`)
    this.#need(model, `${place}.model`, 'must be the name of a model')
    this.#refuseKeys(request, op, place)
    if (op === undefined) return undefined
    const read = this.#readAs(op, model ?? '', request, index)
    if (model !== undefined && read && 'id' in read) this.#checkName(read, index)
    return read
  }

  refuseIfAny(): void {
    if (this.#faults.size === 0) return
    const named = [...this.#faults].slice(0, MAX_NAMED_FAULTS)
    const list = named.slice(0, 5).map(([place, message]) => `${place} ${message}`)
    const more = this.#faults.size > list.length ? ` and ${this.#faults.size - list.length} more` : ''
    throw new Refusal('bad-request', `Nothing was written: ${list.join('; ')}${more}`, {
      errors: Object.fromEntries(named),
      data: { index: indexOfPlace(named[0]?.[0]) },
    })
  }

  #readAs(op: Operation, model: string, request: Data, index: number): BatchRequest | undefined {
    const place = `requests[${index}]`
    if (op === 'create') {
      const data = this.#dataIn(request, place)
      const ref = this.#refIn(request, model, index)
      if (data) this.#refuseKeysOfARecord(data, place)
      return data && { op, model, data, ref }
    }
    const id = this.#idIn(request, place)
    if (op === 'update') {
      const data = this.#dataIn(request, place)
      const version = data && this.#versionOfUpdate(request, data, id, place)
      return data && id !== undefined && version !== undefined ? { op, model, id, version, data } : undefined
    }
    const isNeeded = op === 'assert' && (request['version'] ?? null) === null
    const version = this.#versionIn(request, `${place}.version`)
    if (isNeeded)
      this.#fault(`${place}.version`, 'is needed: the version that the record is asserted to be at')
    if (id === undefined) return undefined
    if (op === 'delete') return { op, model, id, version }
    return version === undefined ? undefined : { op, model, id, version }
  }

  /** A word that means nothing here would be ignored, and whoever misspelled a version deceived. */
  #refuseKeys(request: Data, op: Operation | undefined, place: string): void {
    for (const [key, value] of Object.entries(request)) {
      const at = `${place}.${key.slice(0, MAX_WORD)}`
      const isTaken = !op || [...FOR_ALL, ...TAKES[op]].some((each) => each === key)
      if (!KEYS.includes(key))
        this.#fault(at, `is no part of a request${this.#areMany ? '' : didYouMean(key, KEYS)}`)
      else if (!isTaken && (value ?? null) !== null) this.#fault(at, `is not for ${op}`)
    }
  }

  #dataIn({ data }: Data, place: string): Data | undefined {
    return this.#need(isObject(data) ? data : undefined, `${place}.data`, 'must be an object of fields')
  }

  #refIn({ ref = null }: Data, model: string, index: number): string | undefined {
    if (ref === null) return undefined
    const place = `requests[${index}].ref`
    if (!isRefName(ref)) {
      this.#fault(place, 'must be 1 to 64 letters, digits, "_", "." or "-"')
      return undefined
    }
    const other = this.#refs.get(ref)
    if (other === undefined) this.#refs.set(ref, { index, model, removedBy: undefined })
    else this.#fault(place, `is the ref of requests[${other.index}] already`)
    return ref
  }

  #refuseKeysOfARecord(data: Data, place: string): void {
    for (const key of ['id', 'version'])
      if ((data[key] ?? null) !== null)
        this.#fault(`${place}.data.${key}`, 'must be left out: a new record has none yet')
  }

  #idIn({ id = null }: Data, place: string): Named | undefined {
    if (!isRef(id))
      return this.#need(isId(id) ? id : undefined, `${place}.id`, 'must be a whole number from 1')
    const { $ref: ref, ...rest } = id
    if (isRefName(ref) && Object.keys(rest).length === 0) return { $ref: ref }
    this.#fault(`${place}.id`, 'must be a whole number from 1, or such as { "$ref": "a" }')
    return undefined
  }

  #versionIn({ version = null }: Data, place: string): number | undefined {
    if (version === null) return undefined
    return this.#need(isVersion(version) ? version : undefined, place, 'must be a whole number from 0')
  }

  /** As in an update of one record, `data` may have the keys, too. */
  #versionOfUpdate(request: Data, data: Data, id: Named | undefined, place: string): number | undefined {
    const { id: same = null } = data
    if (same !== null && id !== undefined && !isSame(same, id))
      this.#fault(`${place}.data.id`, `is not the id of the request, ${JSON.stringify(id)}`)
    if ([request, data].every(({ version = null }) => version === null))
      this.#fault(`${place}.version`, 'is needed: the version that the update was made from')
    const outside = this.#versionIn(request, `${place}.version`)
    const inside = this.#versionIn(data, `${place}.data.version`)
    if (outside !== undefined && inside !== undefined && outside !== inside)
      this.#fault(`${place}.data.version`, `is not the version of the request, ${outside}`)
    return outside ?? inside
  }

  #checkName(request: Exclude<BatchRequest, CreateRequest>, index: number): void {
    const { model, id } = request
    if (typeof id === 'number') this.#nameOnce(`${model} ${id}`, index)
    else this.#checkRef(request, id.$ref, index)
  }

  /** What is made here may be named again and again, until it is removed. */
  #checkRef({ op, model }: BatchRequest, ref: string, index: number): void {
    const place = `requests[${index}].id`
    const made = this.#refs.get(ref)
    if (!made) this.#fault(place, `names "${ref}", which is no ref of an earlier request`)
    else if (made.model !== model)
      this.#fault(place, `names "${ref}", which requests[${made.index}] makes of another model`)
    else if (made.removedBy !== undefined)
      this.#fault(place, `names "${ref}", which requests[${made.removedBy}] removes`)
    else if (op === 'delete') made.removedBy = index
  }

  #nameOnce(name: string, index: number): void {
    const other = this.#named.get(name)
    if (other === undefined) this.#named.set(name, index)
    else
      this.#fault(
        `requests[${index}].id`,
        `names ${name.slice(0, MAX_WORD)} again, as requests[${other}] does`,
      )
  }

  /** The value, or a fault if there is none. */
  #need<T>(value: T | undefined, place: string, message: string): T | undefined {
    if (value === undefined) this.#fault(place, message)
    return value
  }

  #fault(place: string, message: string): void {
    if (!this.#faults.has(place)) this.#faults.set(place, message)
  }

  /** No more of them will be named: nothing is worth looking up for the rest. */
  get #areMany(): boolean {
    return this.#faults.size >= MAX_NAMED_FAULTS
  }
}

function isSame(sent: unknown, id: Named): boolean {
  return typeof id === 'number' ? sent === id : isRef(sent) && sent.$ref === id.$ref
}
