// Reads a record for a form: all fields, and the lines of its owned lists with their values and versions.
import { isSecret } from './drafts.js'
import type { WireRecord } from 'verso-records/client'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { fetchModel } from '../service/models.js'
import { client, session } from '../service/session.js'

/** Descriptions of models that forms have asked for. Each is read once in a page. */
const models = new Map<string, Promise<ModelInfo>>()

session.subscribe(() => {
  // Somebody else may see other fields.
  if (session.value.status === 'signed-out') models.clear()
})

async function findModel(name: string): Promise<ModelInfo> {
  const known = models.get(name)
  if (known) return known
  const read = fetchModel(name)
  models.set(name, read)
  read.catch(() => models.delete(name))
  return read
}

export async function readRecord(model: ModelInfo, id: number): Promise<WireRecord> {
  const lists = model.fields.filter(({ kind }) => kind === 'owned-list')
  const records = client.model(model.name)
  if (lists.length === 0) return records.read(id)
  const related = await Promise.all(
    lists.map(async (list) => [list.name, await listSelectedFields(list)] as const),
  )
  const fields = model.fields.filter(isSelected).map(({ name }) => name)
  // The names are known only at run time.
  const selection = { fields, related: Object.fromEntries(related) }
  return records.fetch(id, selection)
}

/** By owned list, the fields of its lines that are secrets. */
export async function findLineSecrets({
  fields,
}: ModelInfo): Promise<Readonly<Record<string, readonly string[]>>> {
  const lists = fields.filter(({ kind }) => kind === 'owned-list')
  const secrets = lists.map(async ({ name, target = '' }) => {
    const line = await findModel(target)
    return [name, line.fields.filter(isSecret).map((field) => field.name)] as const
  })
  return Object.fromEntries(await Promise.all(secrets))
}

async function listSelectedFields({ target = '', mappedBy }: FieldInfo): Promise<readonly string[]> {
  const { fields } = await findModel(target)
  return fields
    .filter((field) => isSelected(field) && !field.isSystem && field.name !== mappedBy)
    .filter(({ kind }) => kind !== 'owned-list')
    .map(({ name }) => name)
}

function isSelected(field: FieldInfo): boolean {
  const { kind, name } = field
  return kind !== 'file' && kind !== 'inverse' && !isSecret(field) && name !== 'id' && name !== 'version'
}
