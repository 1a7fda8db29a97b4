// What is known of a file beside its content: in the Log, in a conflict, in a line that travels.
import { Fault } from '../values/field-types.js'
import { safeFileName } from '../values/file-name.js'
import type { Model } from '../definition/model.js'
import { META_FILE } from './system-models.js'
import { isCount, isObject, type Value, type Values } from '../values/value.js'

export interface FileFacts {
  readonly name: string
  readonly type: string
  readonly size: number
  readonly sha256: string
}

const KEYS: readonly string[] = ['name', 'type', 'size', 'sha256']

export function factsOf({ name, type, size, sha256 }: FileFacts): Values {
  return { name, type, size, sha256 }
}

/** Outside data → facts, or what is wrong with them. */
export function parseFacts(input: unknown): Value | Fault {
  if (!isObject(input) || Object.keys(input).some((key) => !KEYS.includes(key)))
    return new Fault('must be null or a file such as { "name", "type", "size", "sha256" }')
  const { name, type, size, sha256 } = input
  if (typeof name !== 'string' || safeFileName(name) !== name) return new Fault('has a name that no file has')
  if (typeof type !== 'string') return new Fault('has no type')
  if (!isCount(size) || !Number.isSafeInteger(size)) return new Fault('has no size in bytes')
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    return new Fault('has no sha256 of 64 digits')
  return { name, type, size, sha256 }
}

/** The type is left out: it follows the content, and other versions of the service may tell more of them apart. */
export function isSameFile(a: Value, b: Value): boolean {
  if (!isObject(a) || !isObject(b)) return a === b
  return a['sha256'] === b['sha256'] && a['size'] === b['size'] && a['name'] === b['name']
}

/** What a file that stands for itself says of its content. */
export function aboutContent(model: Model, facts: FileFacts | undefined): Values {
  return model === META_FILE ? { fileType: facts?.type ?? null, fileSize: facts?.size ?? null } : {}
}
