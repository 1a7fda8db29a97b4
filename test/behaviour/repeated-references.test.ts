// A request may contain a record several times with its version, if the record does not change.
import { expect, test } from 'vitest'
import { readUpdateDraft } from '../../src/model/write/draft-reader.js'
import type { Draft } from '../../src/model/write/draft.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { RecordWriter } from '../../src/service/write/record-writer.js'
import { createAttempt, getTimestamp } from '../../src/service/context/context.js'
import * as store from '../../src/store/records/records.js'
import type { WireRecord } from '../../src/wire.js'
import { onEveryTarget } from '../targets.js'
import { idsOf, inShort, useRelatedService } from './related-service.js'

const COMPANY = 'rel.Company'
const PERSON = 'rel.Person'
const CIRCLE = 'rel.Circle'

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf, expectRolledBack } = useRelatedService(
    engine,
    transport,
  )

  const pairOf = async () => {
    const [parent, company] = [await make(COMPANY, { name: 'Parent' }), await make(COMPANY, { name: 'C' })]
    return { parent, company, at: { id: parent.id, version: 0 } }
  }
  test('an unchanged record may appear twice in a request with its version and values', async () => {
    const { parent, at } = await pairOf()
    const circle = await make(CIRCLE, { name: 'K' })
    const held = { ...at, name: 'Parent', founded: null, code: null }
    const known = { id: circle.id, version: 0, name: 'K' }
    for (const [one, other] of [
      [at, at],
      [held, held],
      [at, held],
      [held, { ...at, parent: null }],
    ] as const) {
      let boss: WireRecord | undefined
      const changes = await changesOf(async () => {
        boss = await make(PERSON, {
          ...{ name: 'P', company: one, circles: [known] },
          boss: { name: 'B', company: other, circles: [{ id: circle.id, version: 0 }] },
        })
      })
      const made = await read(PERSON, (boss?.['boss'] as WireRecord).id)
      expect([boss, made].map((each) => (each?.['company'] as WireRecord).id)).toEqual([parent.id, parent.id])
      expect(idsOf(boss, 'circles')).toEqual([{ id: circle.id }])
      // Neither version is incremented.
      expect(inShort(changes).filter((each) => !each.startsWith(PERSON))).toEqual([])
    }
    const person = await make(PERSON, { name: 'Q', boss: { name: 'R' } })
    const boss = { ...(person['boss'] as { id: number }), version: 0, company: at }
    expect(await change(PERSON, person.id, { version: 0, company: held, boss })).toMatchObject({ version: 1 })
    expect(await read(COMPANY, parent.id)).toMatchObject({ version: 0 })
  })

  test('an unchanged record may appear in several saved records and in several requests of a batch', async () => {
    const { parent, at } = await pairOf()
    const all = ['A', 'B'].map((name) => ({ name, company: { ...at, name: 'Parent' } }))
    const saved = (await records().save(PERSON, all)).data
    const done = (await records().batch(all.map((data) => ({ op: 'create', model: PERSON, data })))).data
    const companies = [...saved, ...(done as readonly WireRecord[])].map((each) => each['company'])
    expect(companies).toMatchObject(Array(4).fill({ id: parent.id, $version: 0 }))
  })

  test('a record that appears twice and changes in one of its places is rejected as invalid', async () => {
    const { parent, at } = await pairOf()
    const [same, other] = [
      { ...at, name: 'Parent' },
      { ...at, name: 'Other' },
    ]
    const already = `changes ${COMPANY} ${parent.id}, which this request already changes in another place`
    const among = `changes ${COMPANY} ${parent.id}, which this request contains in another place, too: change it in one place and send only its id in the others`
    const attempts = [
      [same, other, 'company', already],
      [other, same, 'company', already],
      [other, { ...at, name: 'Third' }, 'company', already],
      [at, other, 'company', among],
      [other, at, 'boss.company', among],
      [other, other, 'boss.company', among],
    ] as const
    for (const [inside, outside, path, message] of attempts) {
      const data = { name: 'P', boss: { name: 'B', company: inside }, company: outside }
      const error = await expectRolledBack(() => make(PERSON, data))
      expect(error).toMatchObject({ kind: 'invalid', details: { errors: { [path]: message } } })
    }
    // Elsewhere it may appear by its id alone.
    const data = { name: 'P', boss: { name: 'B', company: { id: parent.id } }, company: other }
    await make(PERSON, data)
    expect(await read(COMPANY, parent.id)).toMatchObject({ version: 1, name: 'Other' })
  })

  test('a record that appears twice, once with a list, is rejected as invalid', async () => {
    const { parent, at } = await pairOf()
    const data = { name: 'P', boss: { name: 'B', company: { ...at, addresses: [] } }, company: at }
    const errors = {
      company: `changes ${COMPANY} ${parent.id}, which this request already changes in another place`,
    }
    const error = await expectRolledBack(() => make(PERSON, data))
    expect(error).toMatchObject({ kind: 'invalid', details: { errors } })
  })

  test('an outdated version of a record that appears twice is a conflict in either place', async () => {
    const { parent, at } = await pairOf()
    await change(COMPANY, parent.id, { version: 0, name: 'Newer' })
    const now = { ...at, version: 1 }
    for (const [one, other] of [
      [at, at],
      [at, now],
      [now, at],
    ]) {
      const error = await expectRolledBack(() => make(PERSON, { company: one, boss: { company: other } }))
      expect(error).toMatchObject({
        kind: 'conflict',
        details: { data: { entityName: COMPANY, entityId: parent.id, current: 1 } },
      })
    }
    expect(await make(PERSON, { company: now, boss: { company: now } })).toMatchObject({ version: 0 })
  })

  test('a mutant that drops the isRepeated mark writes one of two changes and is caught', async () => {
    const { parent, at } = await pairOf()
    const person = await make(PERSON, { name: 'Q', boss: { name: 'R' } })
    const boss = { ...(person['boss'] as { id: number }), version: 0, company: at }
    const { app } = service()
    const now = getTimestamp(app)
    const model = app.catalog.get(PERSON)
    const key = { id: person.id, version: 0 }
    const data = { boss, company: { ...at, name: 'Other' } }
    const draft = unmarked(readUpdateDraft(app.catalog, model, { data, key }, now))
    const undone = new Error('undone')
    let written: unknown
    const again = app.db.transaction(async (tx) => {
      await new RecordWriter(
        { app, principal: SERVICE_PRINCIPAL, db: tx, tx, now, attempt: createAttempt() },
        [draft],
      ).update(draft, key, {
        version: 0,
        source: 'version',
      })
      written = await store.readById(tx, app.tables.of(app.catalog.get(COMPANY)), parent.id)
      throw undone
    })
    await expect(again).rejects.toBe(undone)
    expect(written).toMatchObject({ name: 'Other' })
  })
})

function unmarked({ isDuplicate: _, ...draft }: Draft): Draft {
  const neighbours = [...draft.related].map(([name, each]) => [name, unmarked(each)] as const)
  return { ...draft, related: new Map(neighbours) }
}
