// Uploads and downloads the files of binary fields. An upload is an ordinary write of its record.
import { VersoError } from '../../errors.js'
import { andCriteria } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import { deriveFileValues, pickFileMetadata, type FileMetadata } from '../../model/catalog/file-metadata.js'
import { sanitizeFileName } from '../../model/values/file-name.js'
import { detectContentType } from '../../model/values/file-type.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean, shortenForMessage } from '../../model/values/did-you-mean.js'
import { isObject, type Values } from '../../model/values/value.js'
import type { PendingBlob, Transaction } from '../../store/engine/database.js'
import { findRecordFiles, insertFile } from '../../store/records/files.js'
import * as store from '../../store/records/records.js'
import type {
  ByteRange,
  Download,
  DownloadOptions,
  RemoveOptions,
  UpdateOptions,
  Upload,
  WireRecord,
  WriteResult,
} from '../../wire.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { requireId, throwNotFound } from '../access/request-checks.js'
import { saveWithAddition } from './save.js'
import type { Context } from '../context/context.js'

/** An upload whose content has been received. */
export interface ReceivedUpload extends Omit<Upload, 'content'> {
  readonly blob: PendingBlob
}

/** A binary field of a record. */
interface FileField {
  readonly id: number
  readonly fieldName: string
}

const MAX_DOWNLOAD_ATTEMPTS = 3

export async function uploadFile(
  context: Context,
  model: Model,
  { content, ...rest }: Upload,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  findBinaryField(model, rest.field, context.principal)
  const blob = await receiveContent(context.app, content)
  return saveUpload(context, model, { ...rest, blob }, options)
}

/** Receives content before its record is known. The caller passes it to `saveUpload` or to `discardContent`. */
export async function receiveContent(app: App, content: AsyncIterable<Uint8Array>): Promise<PendingBlob> {
  return app.db.blobs.receive(content, app.settings.uploadLimitBytes)
}

export async function discardContent(app: App, blob: PendingBlob): Promise<void> {
  await app.db.blobs.finish(blob)
}

export async function saveUpload(
  context: Context,
  model: Model,
  { data = {}, field: fieldName, name, blob }: ReceivedUpload,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  const { app } = context
  try {
    const field = findBinaryField(model, fieldName, context.principal)
    const facts: FileMetadata = {
      name: sanitizeFileName(name),
      type: detectContentType(blob.head),
      size: blob.size,
      sha256: blob.sha256,
    }
    const file = { field: field.name, ...facts }
    const prepareValues = async (tx: Transaction): Promise<Values> => {
      const id = await insertFile(tx, facts, blob.key, app.clock.now())
      await app.db.blobs.store(tx, id, blob)
      return { [field.name]: { id, ...pickFileMetadata(facts) }, ...deriveFileValues(model, facts) }
    }
    const sent = addFileName(model, data, facts)
    return await saveWithAddition(context, model, { data: sent, file, prepareValues }, options)
  } finally {
    await app.db.blobs.finish(blob)
  }
}

/** Opens the file of a binary field. Undefined if the field is empty. */
export async function downloadFile(
  context: Context,
  model: Model,
  { id, fieldName }: FileField,
  { chooseRange }: DownloadOptions = {},
): Promise<Download | undefined> {
  const { app } = context
  const field = findBinaryField(model, fieldName, context.principal)
  requireId(model, id)
  await refuseHiddenFile(context, model, id, field)
  const table = app.tables.of(model)
  for (let attempt = 1; attempt <= MAX_DOWNLOAD_ATTEMPTS; attempt++) {
    const files = (await findRecordFiles(app.db.reader, table, id)) ?? throwNotFound(model, id)
    const file = files.get(field.name)
    if (!file) return undefined
    const { type, size, sha256 } = file
    const name = await readFileName(app, model, id, file.name)
    const range = requireWithin(size, chooseRange?.({ name, type, size, sha256 }))
    const content = await app.db.blobs.open(file, range)
    if (content) return { name, type, size, sha256, range, content }
    // The file was replaced or removed between the two reads: try again.
  }
  throw new Error(`the content of ${model.name} ${id} ${field.name} is missing`)
}

function requireWithin(size: number, range: ByteRange | undefined): ByteRange | undefined {
  if (!range) return undefined
  const { first, last } = range
  const isWhole = Number.isSafeInteger(first) && Number.isSafeInteger(last)
  if (isWhole && first >= 0 && first <= last && last < size) return range
  throw createRangeError(size)
}

export function createRangeError(fileSize: number): VersoError {
  return new VersoError('range', `The range is not within the file, which has ${fileSize} bytes`, {
    fileSize,
    data: { size: fileSize },
  })
}

/** Refuses the file of a hidden record or of a hidden field as if it did not exist. */
async function refuseHiddenFile(context: Context, model: Model, id: number, field: Field): Promise<void> {
  const { principal, app } = context
  if (!principal.permissions) return
  const permissions = principal.permissions.of(model)
  if (!permissions.canRead(field.name)) throw createUnknownBinaryFieldError(model, field.name, [])
  const visible = andCriteria(permissions.criteriaFor('read'), permissions.mask(field.name))
  const [isVisible] = (visible &&
    (await store.evaluateCriteria(app.db.queryPool, app.tables.of(model), id, [visible]))) ?? [!visible]
  if (!isVisible) throwNotFound(model, id)
}

/** Clears a binary field. */
export async function clearFile(
  context: Context,
  model: Model,
  { id, fieldName }: FileField,
  { version, ...options }: RemoveOptions,
): Promise<WriteResult<WireRecord>> {
  const field = findBinaryField(model, fieldName, context.principal)
  const file = { field: field.name, cleared: true }
  const prepareValues = async (): Promise<Values> => ({
    [field.name]: null,
    ...deriveFileValues(model, undefined),
  })
  return saveWithAddition(context, model, { data: { id, version }, file, prepareValues }, options)
}

/** Refuses models without a binary field. */
export function requireBinaryField(model: Model, principal: Principal): void {
  if (listBinaryFields(model, principal).length === 0)
    throw new VersoError('not-found', `${model.name} has no binary field`)
}

/** Finds the binary field by name; without a name, the only one. */
function findBinaryField(model: Model, name: string | undefined, principal: Principal): Field {
  requireBinaryField(model, principal)
  const fields = listBinaryFields(model, principal)
  const names = fields.map((field) => field.name)
  if (name === undefined && fields.length > 1)
    throw new VersoError('bad-request', `Name the binary field of ${model.name}: ${names.join(', ')}`)
  const field = name === undefined ? fields[0] : fields.find((each) => each.name === name)
  if (field) return field
  throw createUnknownBinaryFieldError(model, name ?? '', names)
}

function createUnknownBinaryFieldError(
  { name: model }: Model,
  wrong: string,
  names: readonly string[],
): VersoError {
  const message = `"${shortenForMessage(wrong)}" is not a binary field of ${model}${didYouMean(wrong, names)}`
  return new VersoError('not-found', message)
}

/** Lists the binary fields that the principal may know of. */
function listBinaryFields(model: Model, { permissions }: Principal): Field[] {
  const fields = [...model.fields.values()].filter(({ type }) => type === 'binary')
  return fields.filter((field) => !permissions || permissions.isVisible(model, field))
}

/** Sets the name of a record that stands for a file to the name of the upload, unless the client sent another one. */
function addFileName({ fileFields }: Model, data: unknown, { name }: FileMetadata): unknown {
  if (!fileFields || !isObject(data)) return data
  return { ...data, [fileFields.name]: data[fileFields.name] ?? name }
}

/** Returns the current name of the record if it stands for a file: a client may have renamed it after the upload. */
async function readFileName(app: App, model: Model, id: number, name: string): Promise<string> {
  const { fileFields } = model
  if (!fileFields) return name
  const record = await store.readById(app.db.reader, app.tables.of(model), id)
  return record ? sanitizeFileName(String(record[fileFields.name])) : name
}
