import { expect, test } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { onEveryTarget, catchError } from '../targets.js'
import { inShort, useRelatedService } from './related-service.js'

const BADGE = 'rel.Badge'

onEveryTarget((engine, transport) => {
  const { service, records, make, change, read, changesOf } = useRelatedService(engine, transport)

  const textOf = (record: WireRecord) => String(record['number'])
  const numberOf = (record: WireRecord) => Number(textOf(record).slice(2))
  const spell = (number: number) => `B-${String(number).padStart(4, '0')}`
  /** `count` numbers from the first one. */
  const from = (first: number, count: number) =>
    Array.from({ length: count }, (_, index) => spell(first + index))

  test('sequence numbers are assigned in order from the first one, with prefix and padding', async () => {
    const made = [await make(BADGE, {}), await make(BADGE, {}), await make(BADGE, {})]
    expect(made.map(textOf)).toEqual(['B-0007', 'B-0008', 'B-0009'])
    expect(await read(BADGE, made[1]?.id ?? 0)).toMatchObject({ number: 'B-0008' })
  })

  test('a sequence number sent by a client is ignored in a create and in an update', async () => {
    const last = numberOf(await make(BADGE, {}))
    const made = await make(BADGE, { number: 'B-9000' })
    expect(textOf(made)).toBe(spell(last + 1))
    const sent = await change(BADGE, made.id, { ...made, number: 'B-9000' })
    expect(sent).toMatchObject({ version: 1, number: made['number'] })
    const cleared = await change(BADGE, made.id, { version: 1, number: null })
    expect(cleared).toMatchObject({ version: 2, number: made['number'] })
    expect(textOf(await make(BADGE, {}))).toBe(spell(last + 2))
  })

  test('a sequence number is in the Change, and is not assigned again after a delete', async () => {
    const last = numberOf(await make(BADGE, {}))
    const changes = await changesOf(async () => {
      const { id } = await make(BADGE, {})
      await records().remove(BADGE, id)
    })
    const number = spell(last + 1)
    expect(changes.map((change) => change.changes)).toEqual([
      { number: { before: null, after: number } },
      { number: { before: number, after: null } },
    ])
    expect(numberOf(await make(BADGE, {}))).toBe(last + 2)
  })

  test('a rejected create leaves no gap in the sequence numbers', async () => {
    const holder = await make('rel.Person', { name: 'Holder' })
    const held = { holder: { id: holder.id } }
    const last = numberOf(await make(BADGE, held))
    const attempts = [
      held,
      { holder: { id: 987_654 } },
      { holder: 5 },
      { holder: { id: holder.id, version: 9, name: 'X' } },
    ]
    const kinds: string[] = []
    for (const attempt of attempts) kinds.push((await catchError(make(BADGE, attempt))).kind)
    expect(kinds).toEqual(['not-unique', 'invalid', 'invalid', 'conflict'])
    expect(numberOf(await make(BADGE, {}))).toBe(last + 1)
  })

  test('a create repeated under its idempotency key returns the first number and takes no other', async () => {
    const options = { idempotencyKey: 'once' }
    const first = await records().create(BADGE, {}, options)
    expect(await records().create(BADGE, {}, options)).toEqual({ data: first.data, replayed: true })
    expect(numberOf(await make(BADGE, {}))).toBe(numberOf(first.data) + 1)
  })

  test('100 concurrent creates get 100 consecutive sequence numbers', async () => {
    const last = numberOf(await make(BADGE, {}))
    const made = await Promise.all(Array.from({ length: 100 }, () => make(BADGE, {})))
    expect(made.map(textOf).toSorted()).toEqual(from(last + 1, 100))
  })

  test('rejected creates among 100 concurrent ones leave no gap in the sequence numbers', async () => {
    const holder = await make('rel.Person', { name: 'Holder' })
    const held = { holder: { id: holder.id } }
    const last = numberOf(await make(BADGE, held))
    const data = [{}, { holder: { id: 987_654 } }, {}, held]
    const changes = await changesOf(async () => {
      const attempts = Array.from({ length: 100 }, (_, index) => make(BADGE, data[index % 4] ?? {}))
      const results = await Promise.allSettled(attempts)
      const kinds = results.map((result) =>
        result.status === 'fulfilled' ? 'made' : (result.reason as { kind: string }).kind,
      )
      expect(kinds).toEqual(results.map((_, index) => ['made', 'invalid', 'made', 'not-unique'][index % 4]))
    })
    expect(inShort(changes)).toHaveLength(50)
    const given = changes.map(({ changes: { number } }) => number?.after)
    // The change log is in commit order, and so are the numbers: a sequence number locks its sequence until the commit.
    expect(given).toEqual(from(last + 1, 50))
    expect(numberOf(await make(BADGE, {}))).toBe(last + 51)
  })

  test('a sequence number longer than its padding is shown in full', async () => {
    await service().app.db.transaction((tx) =>
      tx.run('update verso_sequence set next = 9999 where name = ?', ['rel.Badge.number']),
    )
    const made = [await make(BADGE, {}), await make(BADGE, {})]
    expect(made.map(textOf)).toEqual(['B-9999', 'B-10000'])
  })
})
