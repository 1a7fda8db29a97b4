// Metadata of a file, as the log, conflicts and exports contain it.
import { FieldError } from '../values/field.js'
import { sanitizeFileName } from '../values/file-name.js'
import type { Model } from '../definition/model.js'
import { isNonNegativeInteger, isObject, type Value, type Values } from '../values/value.js'

export interface FileMetadata {
  readonly name: string
  readonly type: string
  readonly size: number
  readonly sha256: string
}

const FILE_METADATA_KEYS: readonly string[] = ['name', 'type', 'size', 'sha256']

export function pickFileMetadata({ name, type, size, sha256 }: FileMetadata): Values {
  return { name, type, size, sha256 }
}

/** Converts client data to file metadata. */
export function parseFileMetadata(input: unknown): Value | FieldError {
  if (!isObject(input) || Object.keys(input).some((key) => !FILE_METADATA_KEYS.includes(key)))
    return new FieldError('must be null or an object with "name", "type", "size" and "sha256"')
  const { name, type, size, sha256 } = input
  if (typeof name !== 'string' || sanitizeFileName(name) !== name)
    return new FieldError('must have a valid file name as "name"')
  if (typeof type !== 'string') return new FieldError('must have a content type as "type"')
  if (!isNonNegativeInteger(size) || !Number.isSafeInteger(size))
    return new FieldError('must have a number of bytes as "size"')
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
    return new FieldError('must have 64 hexadecimal digits as "sha256"')
  return { name, type, size, sha256 }
}

/** Ignores the content type: it follows from the content, and other releases of the service may detect more types. */
export function isSameFile(a: Value, b: Value): boolean {
  if (!isObject(a) || !isObject(b)) return a === b
  return a['sha256'] === b['sha256'] && a['size'] === b['size'] && a['name'] === b['name']
}

/** Returns the fields that follow from the content, for a record that stands for a file. */
export function deriveFileValues({ fileFields }: Model, metadata: FileMetadata | undefined): Values {
  if (!fileFields) return {}
  return { [fileFields.type]: metadata?.type ?? null, [fileFields.size]: metadata?.size ?? null }
}
