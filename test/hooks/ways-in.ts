// Every way in which a record is written, with the hooks that it must run.
import { Readable } from 'node:stream'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { App } from '../../src/service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { createRecordsHandle } from '../../src/service/hooks/records-handle.js'
import { importRecords } from '../../src/service/transfer/import.js'
import type { Records, WireRecord } from '../../src/wire.js'
import { sourcesIn, writeFiles } from '../transfer/transfer-fixture.js'
import { LINE, ORDER } from './shop.js'

export interface Setting {
  readonly app: App
  readonly records: Records
  /** Without hooks: prepares records. */
  readonly quiet: Records
}

export interface WayIn {
  /** True if it does not exist over HTTP. */
  readonly isDirect?: boolean
  /** Prepares records without hooks, and returns the write. */
  readonly prepare: (setting: Setting) => Promise<() => Promise<unknown>>
  /** The calls in the transaction, in order. */
  readonly calls: readonly string[]
  /** The models of the Changes, in any order. */
  readonly commits: readonly string[]
  /** The models whose hooks run after the commit, if they differ from `commits`. */
  readonly afterCommit?: readonly string[]
}

const SAVE = ['beforeSave', 'validate', 'afterSave'] as const
const REMOVE = ['beforeRemove', 'afterRemove'] as const

function callsOf(model: string, hooks: readonly string[]): string[] {
  return hooks.map((hook) => `${model} ${hook}`)
}

/** The calls of an order around those of its lines. */
function around(before: readonly string[], inner: readonly string[], after: readonly string[]): string[] {
  return [...callsOf(ORDER, before), ...inner, ...callsOf(ORDER, after)]
}

const SAVED = callsOf(ORDER, SAVE)
const REMOVED = callsOf(ORDER, REMOVE)

async function createOrder({ quiet }: Setting, lines: readonly object[] = []): Promise<WireRecord> {
  return (await quiet.create(ORDER, { title: 'a', lines })).data
}

function titled(title: string) {
  return { criteria: [{ fieldName: 'title', operator: '=', value: title }] }
}

let folders = 0

async function importOrder(app: App, id: number): Promise<unknown> {
  const folder = mkdtempSync(path.join(tmpdir(), `verso-hooks-${++folders}-`))
  try {
    const line = `${JSON.stringify({ id, version: 3, title: 'imported' })}\n`
    return await importRecords(app, sourcesIn(app, writeFiles(folder, { [`${ORDER}.ndjson`]: line })))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export const WAYS_IN: Readonly<Record<string, WayIn>> = {
  create: {
    prepare:
      async ({ records }) =>
      () =>
        records.create(ORDER, { title: 'a' }),
    calls: SAVED,
    commits: [ORDER],
  },
  update: {
    prepare: async (setting) => {
      const { id, version } = await createOrder(setting)
      return () => setting.records.update(ORDER, id, { version, title: 'b' })
    },
    calls: SAVED,
    commits: [ORDER],
  },
  'merged update': {
    prepare: async (setting) => {
      const { id, version } = await createOrder(setting)
      await setting.quiet.update(ORDER, id, { version, note: 'theirs' })
      return () => setting.records.update(ORDER, id, { version, title: 'b' }, { merge: 'fields' })
    },
    calls: SAVED,
    commits: [ORDER],
  },
  'list of saves': {
    prepare: async (setting) => {
      const { id, version } = await createOrder(setting)
      return () => setting.records.save(ORDER, [{ title: 'new' }, { id, version, title: 'b' }])
    },
    calls: [...SAVED, ...SAVED],
    commits: [ORDER, ORDER],
  },
  remove: {
    prepare: async (setting) => {
      const { id, version } = await createOrder(setting)
      return () => setting.records.remove(ORDER, id, { version })
    },
    calls: REMOVED,
    commits: [ORDER],
  },
  'list of removes': {
    prepare: async (setting) => {
      const [one, other] = [await createOrder(setting), await createOrder(setting)]
      return () => setting.records.removeAll(ORDER, [{ id: one.id }, { id: other.id }])
    },
    calls: [...REMOVED, ...REMOVED],
    commits: [ORDER, ORDER],
  },
  'create with lines': {
    prepare:
      async ({ records }) =>
      () =>
        records.create(ORDER, { title: 'a', lines: [{ product: 'x' }, { product: 'y' }] }),
    calls: around(
      ['beforeSave', 'validate'],
      [...callsOf(LINE, SAVE), ...callsOf(LINE, SAVE)],
      ['afterSave'],
    ),
    commits: [ORDER, LINE, LINE],
  },
  'changed, added and removed line': {
    prepare: async (setting) => {
      const order = await createOrder(setting, [{ product: 'x' }, { product: 'y' }])
      const [first] = order['lines'] as readonly { readonly id: number }[]
      const lines = [{ id: first?.id, version: 0, product: 'z' }, { product: 'new' }]
      return () => setting.records.update(ORDER, order.id, { version: order.version, lines })
    },
    calls: around(
      ['beforeSave', 'validate'],
      [...callsOf(LINE, REMOVE), ...callsOf(LINE, SAVE), ...callsOf(LINE, SAVE)],
      ['afterSave'],
    ),
    commits: [ORDER, LINE, LINE, LINE],
  },
  'remove with lines': {
    prepare: async (setting) => {
      const { id } = await createOrder(setting, [{ product: 'x' }])
      return () => setting.records.remove(ORDER, id)
    },
    calls: around(['beforeRemove'], callsOf(LINE, REMOVE), ['afterRemove']),
    commits: [ORDER, LINE],
  },
  batch: {
    prepare: async (setting) => {
      const [changed, removed] = [await createOrder(setting), await createOrder(setting)]
      return () =>
        setting.records.batch([
          { op: 'create', model: ORDER, data: { title: 'a' } },
          { op: 'update', model: ORDER, id: changed.id, version: 0, data: { title: 'b' } },
          { op: 'delete', model: ORDER, id: removed.id, version: 0 },
        ])
    },
    calls: [...SAVED, ...SAVED, ...REMOVED],
    commits: [ORDER, ORDER, ORDER],
  },
  'mass update': {
    prepare: async (setting) => {
      const title = `mass ${Math.random()}`
      await setting.quiet.create(ORDER, { title })
      await setting.quiet.create(ORDER, { title })
      return () => setting.records.updateMass(ORDER, { data: titled(title), values: { note: 'm' } })
    },
    calls: [...SAVED, ...SAVED],
    commits: [ORDER, ORDER],
  },
  'merge patch': {
    prepare: async (setting) => {
      const { id, version } = await createOrder(setting)
      return () => setting.records.update(ORDER, id, { version, title: 'b' }, { patch: true })
    },
    calls: SAVED,
    commits: [ORDER],
  },
  'related record': {
    prepare: async (setting) => {
      const order = await createOrder(setting, [{ product: 'x' }])
      const [line] = order['lines'] as readonly { readonly id: number }[]
      const related = { id: order.id, version: order.version, title: 'b' }
      return () => setting.records.update(LINE, line?.id ?? 0, { version: 0, product: 'z', order: related })
    },
    calls: [...SAVED, ...callsOf(LINE, SAVE)],
    commits: [ORDER, LINE],
  },
  'clear of a file': {
    prepare: async (setting) => {
      const { id } = await createOrder(setting)
      const data = { id, version: 0 }
      const content = Readable.from([Buffer.from('p')])
      await setting.quiet.upload(ORDER, { data, field: 'picture', content })
      return () => setting.records.clear(ORDER, id, 'picture', { version: 1 })
    },
    calls: SAVED,
    commits: [ORDER],
  },
  import: {
    isDirect: true,
    prepare: async (setting) => {
      const { id } = await createOrder(setting)
      return () => importOrder(setting.app, id + 1_000)
    },
    calls: SAVED,
    commits: [ORDER],
  },
  revert: {
    prepare: async (setting) => {
      const { id } = await createOrder(setting)
      await setting.quiet.update(ORDER, id, { version: 0, title: 'b' })
      return () => setting.records.revert(ORDER, id, { version: 1, to: 0 })
    },
    calls: SAVED,
    commits: [ORDER],
  },
  upload: {
    prepare: async (setting) => {
      const { id } = await createOrder(setting)
      const data = { id, version: 0 }
      return () =>
        setting.records.upload(ORDER, { data, field: 'picture', content: Readable.from([Buffer.from('p')]) })
    },
    calls: SAVED,
    commits: [ORDER],
  },
  transaction: {
    isDirect: true,
    prepare: async ({ app }) => {
      const handle = createRecordsHandle(app, async () => SERVICE_PRINCIPAL)
      return () =>
        handle.transaction(async (records) => {
          const { id, version } = await records.of(ORDER).create({ title: 'a' })
          await records.of(ORDER).update(id, { version, title: 'b' })
        })
    },
    calls: [...SAVED, ...SAVED],
    commits: [ORDER],
  },
}

/** Writes that run no hook in the transaction. */
export const WAYS_WITHOUT_HOOKS: Readonly<Record<string, WayIn>> = {
  'save that changes nothing': {
    prepare: async (setting) => {
      const order = await createOrder(setting, [{ product: 'x' }])
      const [line] = order['lines'] as readonly { readonly id: number }[]
      const lines = [{ id: line?.id, version: 0, product: 'x' }]
      return () => setting.records.update(ORDER, order.id, { version: 0, title: 'a', lines })
    },
    calls: [],
    commits: [ORDER],
    afterCommit: [],
  },
  restore: {
    prepare: async (setting) => {
      const { id } = await createOrder(setting)
      await setting.quiet.remove(ORDER, id, { version: 0 })
      return () => setting.records.revert(ORDER, id, { version: 1, to: 0 })
    },
    calls: [],
    commits: [ORDER],
  },
}
