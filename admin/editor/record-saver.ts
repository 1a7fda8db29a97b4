// Sends the parts of a form to the service: the record, and its files.
import type { WireRecord } from 'verso-records/client'
import { findFieldProblem } from '../fields/field-problems.js'
import { isInvalidInput, isPendingFile } from '../fields/field-props.js'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { client } from '../service/session.js'
import { getTexts } from '../texts/texts.js'
import { createRandomText } from './random-text.js'
import { buildChanges, isSameJson, listLines, type RecordValues } from './record-values.js'

export class RecordSaver {
  /** A create without an answer is repeated with its key, so that it takes effect at most once. */
  #create: { readonly body: RecordValues; readonly key: string } | undefined

  constructor(
    private readonly model: ModelInfo,
    private readonly fields: readonly FieldInfo[],
  ) {}

  listPendingFiles(values: RecordValues): readonly FieldInfo[] {
    return this.fields.filter(({ name }) => isPendingFile(values[name]))
  }

  /** Creates the record, with its first file: a file may be required. */
  async create(values: RecordValues): Promise<WireRecord> {
    const data = buildChanges(this.fields, values, {})
    if (!this.#create || !isSameJson(this.#create.body, data))
      this.#create = { body: data, key: createRandomText() }
    const options = { idempotencyKey: this.#create.key }
    const records = client.model(this.model.name)
    const [first] = this.listPendingFiles(values)
    const file = first && findFile(values[first.name])
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

  /** Saves the changed fields on the version of the base. Returns undefined if there are none. */
  async update(id: number, values: RecordValues, base: RecordValues): Promise<WireRecord | undefined> {
    const changes = buildChanges(this.fields, values, base)
    if (Object.keys(changes).length === 0) return undefined
    return client.model(this.model.name).update(id, { ...changes, version: Number(base['version']) })
  }

  /** Stores or clears the pending file of a field. */
  async storeFile(
    record: { readonly id: number; readonly version: number },
    { name }: FieldInfo,
    value: unknown,
  ): Promise<WireRecord> {
    const records = client.model(this.model.name)
    const { id, version } = record
    const file = findFile(value)
    return file
      ? records.upload(id, { content: file, name: file.name, field: name, version })
      : records.clear(id, name, { version })
  }
}

/** Inputs that hold something that is no value, such as half a date. They cannot be sent. */
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

function findFile(value: unknown): File | null {
  return isPendingFile(value) ? value.pendingFile : null
}
