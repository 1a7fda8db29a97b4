// Files: they come into a binary field by an upload, which is a write of its record like any other, and leave by a download.
import { VersoError } from '../../errors.js'
import { andCriteria } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field-types.js'
import { deriveMetaFileValues, pickFileMetadata, type FileMetadata } from '../../model/catalog/file-facts.js'
import { sanitizeFileName } from '../../model/values/file-name.js'
import { detectContentType } from '../../model/values/file-type.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { META_FILE } from '../../model/catalog/system-models.js'
import { isObject, type Values } from '../../model/values/value.js'
import type { PendingBlob, Transaction } from '../../store/engine/database.js'
import { findRecordFiles, insertFile } from '../../store/records/files.js'
import * as store from '../../store/records/records.js'
import type { Download, RemoveOptions, UpdateOptions, Upload, WireRecord, WriteResult } from '../../wire.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { checkId, missing } from '../context/ids.js'
import { saveWith } from './save.js'

/** A file that has arrived, in the place of its content. */
export interface Received extends Omit<Upload, 'content'> {
  readonly incoming: PendingBlob
}

const MAX_ATTEMPTS = 3

export async function upload(
  app: App,
  by: Caller,
  model: Model,
  { content, ...rest }: Upload,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  binaryField(model, rest.field, by)
  const incoming = await receive(app, content)
  return uploadReceived(app, by, model, { ...rest, incoming }, options)
}

/** Content that comes before it is known what to do with it. It is to be given to `uploadReceived`, or to `discard`. */
export async function receive(app: App, content: AsyncIterable<Uint8Array>): Promise<PendingBlob> {
  return app.db.blobs.receive(content, app.settings.uploadLimitBytes)
}

export async function discard(app: App, incoming: PendingBlob): Promise<void> {
  await app.db.blobs.finish(incoming)
}

export async function uploadReceived(
  app: App,
  by: Caller,
  model: Model,
  { data = {}, field: named, name, incoming }: Received,
  options: UpdateOptions = {},
): Promise<WriteResult<WireRecord>> {
  try {
    const field = binaryField(model, named, by)
    const facts: FileMetadata = {
      ...{ name: sanitizeFileName(name), type: detectContentType(incoming.head) },
      ...{ size: incoming.size, sha256: incoming.sha256 },
    }
    const file = { field: field.name, ...facts }
    const valuesIn = async (tx: Transaction): Promise<Values> => {
      const id = await insertFile(tx, facts, incoming.key, app.clock.now())
      await app.db.blobs.store(tx, id, incoming)
      return { [field.name]: { id, ...pickFileMetadata(facts) }, ...deriveMetaFileValues(model, facts) }
    }
    const sent = withFileName(model, data, facts)
    return await saveWith(app, by, model, sent, { file, valuesIn }, options)
  } finally {
    await app.db.blobs.finish(incoming)
  }
}

/** What a binary field holds; undefined if it is empty. */
export async function download(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  named: string,
): Promise<Download | undefined> {
  const field = binaryField(model, named, by)
  checkId(model, id)
  await refuseUnseen(app, by, model, id, field)
  const table = app.tables.of(model)
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const files = (await findRecordFiles(app.db.reader, table, id)) ?? missing(model, id)
    const file = files.get(field.name)
    if (!file) return undefined
    const { type, size, sha256 } = file
    const name = await nameOf(app, model, id, file.name)
    const content = await app.db.blobs.open(file)
    if (content) return { name, type, size, sha256, content }
    // Replaced or removed in between: then there is another one by now, or none.
  }
  throw new Error(`the content of ${model.name} ${id} ${field.name} is missing`)
}

/** A file of a record that may not be seen, or in a field that is hidden in it, is not there. */
async function refuseUnseen(app: App, by: Caller, model: Model, id: number, field: Field): Promise<void> {
  if (!by.rights) return
  const rights = by.rights.of(model)
  if (!rights.canRead(field.name)) throw unknownBinary(model, field.name, [])
  const seen = andCriteria(rights.criteriaFor('read'), rights.mask(field.name))
  const [isSeen] = (seen &&
    (await store.evaluateCriteria(app.db.queryPool, app.tables.of(model), id, [seen]))) ?? [!seen]
  if (!isSeen) missing(model, id)
}

/** Empties a binary field. */
export async function clear(
  app: App,
  by: Caller,
  model: Model,
  id: number,
  named: string,
  { version, ...options }: RemoveOptions,
): Promise<WriteResult<WireRecord>> {
  const field = binaryField(model, named, by)
  const file = { field: field.name, cleared: true }
  const valuesIn = async (): Promise<Values> => ({
    [field.name]: null,
    ...deriveMetaFileValues(model, undefined),
  })
  return saveWith(app, by, model, { id, version }, { file, valuesIn }, options)
}

/** Whether anything can be uploaded to the model at all. */
export function requireBinary(model: Model, by: Caller): void {
  if (binaryFields(model, by).length === 0)
    throw new VersoError('not-found', `${model.name} has no binary field`)
}

/** The binary field of that name; without a name the only one. */
function binaryField(model: Model, name: string | undefined, by: Caller): Field {
  requireBinary(model, by)
  const fields = binaryFields(model, by)
  const names = fields.map((field) => field.name)
  if (name === undefined && fields.length > 1)
    throw new VersoError('bad-request', `Name the binary field of ${model.name}: ${names.join(', ')}`)
  const field = name === undefined ? fields[0] : fields.find((each) => each.name === name)
  if (field) return field
  throw unknownBinary(model, name ?? '', names)
}

function unknownBinary({ name: model }: Model, wrong: string, names: readonly string[]): VersoError {
  const message = `"${wrong.slice(0, 100)}" is no binary field of ${model}${didYouMean(wrong, names)}`
  return new VersoError('not-found', message)
}

/** Those that may be known. */
function binaryFields(model: Model, { rights }: Caller): Field[] {
  const fields = [...model.fields.values()].filter(({ type }) => type === 'binary')
  return fields.filter((field) => !rights || rights.isVisible(model, field))
}

/** A file that stands for itself is called as it was where it came from, unless it is given another name. */
function withFileName(model: Model, data: unknown, { name }: FileMetadata): unknown {
  if (model !== META_FILE || !isObject(data)) return data
  return { ...data, fileName: data['fileName'] ?? name }
}

/** Such a file may have been renamed since. */
async function nameOf(app: App, model: Model, id: number, name: string): Promise<string> {
  if (model !== META_FILE) return name
  const record = await store.read(app.db.reader, app.tables.of(model), id)
  return record ? sanitizeFileName(String(record['fileName'])) : name
}
