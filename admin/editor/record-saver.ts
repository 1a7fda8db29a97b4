// Sends a form to the service: a create or an update, then its files.
import type { WireRecord } from 'verso-records/client'
import { findFieldProblem } from '../fields/field-problems.js'
import { isInvalidInput, isPendingFile } from '../fields/field-props.js'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { client } from '../service/session.js'
import { readRecord } from './read-record.js'
import { getTexts } from '../texts/texts.js'
import { buildChanges, isSameJson, listLines, type RecordValues } from './record-values.js'

const KEY_BYTES = 16

export interface SavedRecord {
  /** The record as it is stored now. */
  readonly record: WireRecord
  /** The version before the save, which undoes it. -1 for a new record. */
  readonly from: number
  /** The version that the save has made. */
  readonly to: number
}

export class RecordSaver {
  /** A create without an answer is repeated with its key, so that it takes effect at most once. */
  #create: { readonly body: RecordValues; readonly key: string } | undefined

  constructor(
    private readonly model: ModelInfo,
    private readonly fields: readonly FieldInfo[],
  ) {}

  async save(id: number | undefined, values: RecordValues, base: RecordValues): Promise<SavedRecord> {
    const changes = buildChanges(this.fields, values, base)
    const files = this.fields.filter(({ name }) => isPendingFile(values[name]))
    const stored =
      id === undefined
        ? await this.#createRecord(changes, values, files)
        : await this.#updateRecord(id, changes, base as WireRecord)
    const last = await this.#storeFiles(id === undefined ? files.slice(1) : files, values, stored)
    const hasLines = this.fields.some(({ kind }) => kind === 'owned-list')
    // Others may have saved since, so the version before ours is not that of the form.
    const from = Object.keys(changes).length > 0 ? stored.version - 1 : stored.version
    return { record: hasLines ? await readRecord(this.model, last.id) : last, from, to: last.version }
  }

  async #updateRecord(id: number, changes: RecordValues, base: WireRecord): Promise<WireRecord> {
    if (Object.keys(changes).length === 0) return base
    return client.model(this.model.name).update(id, { ...changes, version: base.version })
  }

  async #createRecord(
    data: RecordValues,
    values: RecordValues,
    files: readonly FieldInfo[],
  ): Promise<WireRecord> {
    if (!this.#create || !isSameJson(this.#create.body, data)) this.#create = { body: data, key: createKey() }
    const options = { idempotencyKey: this.#create.key }
    const records = client.model(this.model.name)
    const [first] = files
    const file = first && findPendingFile(values[first.name])
    // A file may be required, so the first one is sent with the record.
    const record =
      first && file
        ? await records.upload(
            undefined,
            { content: file, name: file.name, field: first.name, data },
            options,
          )
        : await records.create(data, options)
    this.#create = undefined
    return record
  }

  async #storeFiles(
    fields: readonly FieldInfo[],
    values: RecordValues,
    record: WireRecord,
  ): Promise<WireRecord> {
    const records = client.model(this.model.name)
    let stored = record
    for (const { name } of fields) {
      const { id, version } = stored
      const file = findPendingFile(values[name])
      stored = file
        ? await records.upload(id, { content: file, name: file.name, field: name, version })
        : await records.clear(id, name, { version })
    }
    return stored
  }
}

/** Inputs that hold something that is no value, such as half a date. The service could not even be asked about them. */
export function findInvalidInputs(
  fields: readonly FieldInfo[],
  values: RecordValues,
): Readonly<Record<string, string>> {
  const { fields: texts } = getTexts()
  const invalid = fields.flatMap((field) => {
    const value = values[field.name]
    if (isInvalidInput(value)) return [[field.name, findFieldProblem(field, value, texts) ?? '']]
    return listLines(value).flatMap((line, index) =>
      Object.keys(line)
        .filter((name) => isInvalidInput(line[name]))
        .map((name) => [`${field.name}[${index}].${name}`, texts.incompleteDate]),
    )
  })
  return Object.fromEntries(invalid) as Readonly<Record<string, string>>
}

function findPendingFile(value: unknown): File | null {
  return isPendingFile(value) ? value.pendingFile : null
}

/** `crypto.randomUUID` exists only on https and localhost. */
function createKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(KEY_BYTES))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
}
