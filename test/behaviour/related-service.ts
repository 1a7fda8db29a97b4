// Starts one service with the related fixture models, with the helpers that their suites share.
import { afterAll, beforeAll, expect } from 'vitest'
import type { VersoError } from '../../src/errors.js'
import { changesSince } from '../log.js'
import { quoteIdentifier, toTableName } from '../../src/store/engine/names.js'
import { toLinkTableName } from '../../src/store/sql/relation.js'
import { SEQUENCE_TABLE } from '../../src/store/records/sequences.js'
import type { Change, Records, WireRecord } from '../../src/wire.js'
import {
  enter,
  catchError,
  startService,
  type Transport,
  type Engine,
  type Service,
  type ServiceOptions,
} from '../targets.js'

/** A related record as shown in an answer. */
export interface Shown {
  readonly id: number
  readonly $version: number
  readonly [nameField: string]: unknown
}

export interface RelatedService {
  readonly service: () => Service
  readonly records: () => Records
  readonly make: (model: string, data: object) => Promise<WireRecord>
  readonly change: (model: string, id: number, data: object) => Promise<WireRecord>
  readonly read: (model: string, id: number) => Promise<WireRecord>
  /** The Changes that `work` makes, in log order. */
  readonly changesOf: (work: () => Promise<unknown>) => Promise<readonly Change[]>
  /** The error that `work` ends in; checks that it wrote no row, no link, no Change and no sequence number. */
  readonly expectRolledBack: (work: () => Promise<unknown>) => Promise<VersoError>
}

const TABLES = ['Company', 'Address', 'Door', 'Person', 'Circle', 'Badge'].map((name) => `rel.${name}`)

export function useRelatedService(
  engine: Engine,
  transport: Transport,
  options: ServiceOptions = {},
): RelatedService {
  let service: Service
  let records: Records
  beforeAll(async () => {
    service = await startService(engine, options)
    records = await enter(service, transport)
  })
  afterAll(() => service.close())

  const lastSeq = async () => {
    const [row] = await service.app.db.reader.all('select max(seq) as "last" from verso_log')
    return Number(row?.['last'] ?? 0)
  }
  const expectRolledBack: RelatedService['expectRolledBack'] = async (work) => {
    const before = await everythingOf(service)
    const error = await catchError(work())
    expect(await everythingOf(service)).toEqual(before)
    return error
  }
  return {
    service: () => service,
    records: () => records,
    make: async (model, data) => (await records.create(model, data)).data,
    change: async (model, id, data) => (await records.update(model, id, data)).data,
    read: (model, id) => records.read(model, id),
    changesOf: async (work) => {
      const last = await lastSeq()
      await work()
      return changesSince(service.app.db.reader, last, 10_000)
    },
    expectRolledBack,
  }
}

async function everythingOf({ app }: Service): Promise<unknown> {
  const rowsOf = (table: string) => app.db.reader.all(`select * from ${table} order by 1, 2`)
  const tables = [
    ...TABLES.map((name) => quoteIdentifier(toTableName(name))),
    quoteIdentifier(toLinkTableName('rel.Person', 'circles')),
    SEQUENCE_TABLE,
  ]
  const rows = await Promise.all(tables.map(rowsOf))
  const [log] = await app.db.reader.all('select count(*) as "count" from verso_log')
  return { rows, log }
}

export function listOf(record: WireRecord | undefined, name: string): readonly Shown[] {
  return record?.[name] as readonly Shown[]
}

/** The ids of a list's members. */
export function idsOf(record: WireRecord | undefined, name: string): readonly { readonly id: number }[] {
  return listOf(record, name).map(({ id }) => ({ id }))
}

export function referenceOf(record: WireRecord, name: string): Shown {
  return record[name] as Shown
}

/** `rel.Company 7 update 1` for each Change. */
export function inShort(changes: readonly Change[]): readonly string[] {
  return changes.map(({ model, id, action, version }) => `${model} ${id} ${action} ${version}`)
}
