// Answers other than records: exports, files, models, and the records that define permissions.
import type { Records } from '../../src/wire.js'
import type { HttpClient } from '../http-client.js'
import { LIST, MODELS, PROJECT, SHAPES } from './project-records.js'
import { outcome, rowsOf, type CellOf } from './read-cells.js'
import { isAmong, type Reference } from './reference.js'

const AUTH = ['User', 'Role', 'Permission', 'ApiKey', 'Event'].map((name) => `verso.auth.${name}`)

/** Cells for both transports. */
export function guardedCells(records: Records, reference: Reference): CellOf[] {
  const auth = AUTH.map((model): CellOf => ({
    what: `find ${model}`,
    actual: async () => outcome(records.find(model).then(() => 'ok')),
    // A permission must name these models in full, and none here does.
    expected: () => (reference.grants === 'everything' ? 'ok' : 'unknown-model'),
  }))
  return [...auth, ...downloads(records, reference)]
}

function downloads(records: Records, reference: Reference): CellOf[] {
  return [1, 2, 99].map((id) => ({
    what: `download ${id}`,
    actual: async () => {
      const file = await outcome(records.download(PROJECT, id, 'cover'))
      if (file === undefined || typeof file === 'string') return file ?? 'empty'
      const chunks: Uint8Array[] = []
      for await (const chunk of file.content) chunks.push(chunk)
      return { name: file.name, text: Buffer.concat(chunks).toString() }
    },
    expected: () => {
      if (!reference.isKnown(PROJECT)) return 'unknown-model'
      const row = rowsOf(reference, PROJECT).find((each) => each.id === id)
      const grants = row ? reference.met(PROJECT, row, 'r') : []
      if (!grants.some(({ readable }) => isAmong(readable, 'cover'))) return 'not-found'
      return id === 1 ? { name: 'a.txt', text: 'cover of 1' } : 'empty'
    },
  }))
}

/** Cells for HTTP only. */
export function tableCells(client: HttpClient, reference: Reference): CellOf[] {
  const exported = MODELS.map((model): CellOf => ({
    what: `export ${model}`,
    actual: async () => {
      const answer = await client.request('POST', `/ws/rest/${model}/export`, {
        fields: ['id', ...listed(reference, model)],
      })
      return answer.status === 200 ? answer.text() : kindOf(answer)
    },
    expected: () => {
      if (!reference.isKnown(model)) return 'unknown-model'
      const mays = ['r', 'x'].every((action) => reference.grantsOn(model, action).length > 0)
      return mays ? tableOf(reference, model) : 'forbidden'
    },
  }))
  return [...exported, ...descriptions(client, reference)]
}

function listed(reference: Reference, model: string): readonly string[] {
  return (LIST[model] ?? []).filter((name) => reference.names(model, name))
}

function tableOf(reference: Reference, model: string): string {
  const names = listed(reference, model)
  const rows = rowsOf(reference, model).filter(
    (row) =>
      reference.sees(model, row) && reference.met(model, row, 'x').length > 0 && row['archived'] !== true,
  )
  const lines = rows.map((row) => {
    const shown = reference.show(model, row, names)
    return [row.id, ...names.map((name) => cellOf(model, name, shown[name]))].join(',')
  })
  return [['id', ...names].join(','), ...lines].map((line) => `${line}\r\n`).join('')
}

/** A related record by its name, or by its id if it has no visible name. */
function cellOf(model: string, name: string, value: unknown): string {
  const shape = SHAPES[model]?.fields[name]
  if (value === null || value === undefined) return ''
  if (typeof value !== 'object' || typeof shape !== 'object') return JSON.stringify(value).replaceAll('"', '')
  const neighbour = value as Readonly<Record<string, string | number | null | undefined>>
  return String(neighbour[SHAPES[shape.target]?.name ?? ''] ?? neighbour['id'])
}

async function kindOf(answer: Response): Promise<string> {
  return ((await answer.json()) as { data: { kind: string } }).data.kind
}

/** The models and fields that the role may read or write. */
function descriptions(client: HttpClient, reference: Reference): CellOf[] {
  const fields = MODELS.map((model): CellOf => ({
    what: `fields of ${model}`,
    actual: async () => {
      const answer = await client.request('GET', `/ws/meta/fields/${model}`)
      if (answer.status !== 200) return kindOf(answer)
      const { data } = (await answer.json()) as { data: { fields: readonly { name: string }[] } }
      return data.fields
        .map(({ name }) => name)
        .filter((name) => name in (SHAPES[model]?.fields ?? {}))
        .sort()
    },
    expected: () => {
      if (!reference.isKnown(model)) return 'unknown-model'
      const names = Object.keys(SHAPES[model]?.fields ?? {})
      return names.filter((name) => reference.sends(model, name)).sort()
    },
  }))
  const models: CellOf = {
    what: 'the models',
    actual: async () => {
      const answer = await client.request('GET', '/ws/meta/models')
      const { data } = (await answer.json()) as { data: readonly string[] }
      return data.filter((name) => (MODELS as readonly string[]).includes(name) || AUTH.includes(name))
    },
    expected: () => {
      const all = [...MODELS, ...(reference.grants === 'everything' ? AUTH : [])]
      return all.filter((model) => reference.isKnown(model)).sort()
    },
  }
  return [...fields, models]
}
