// Sequence numbers taken concurrently through two nodes have no duplicates and no gaps, even if creates are rejected.
import { expect, test } from 'vitest'
import { toIndexName, quoteIdentifier } from '../../src/store/engine/names.js'
import type { Database } from '../../src/store/engine/database.js'
import { enter, onEveryEngine, type Engine } from '../targets.js'
import { numbersReadFirst } from '../mutants/records.js'
import { onNodes, type Nodes, type Mutant } from './nodes.js'

const CREATES = 100
/** The first number of rel.Badge.number, see test/models.ts. */
const FIRST = 7
const SERVICE = 987_654

onEveryEngine((engine) => {
  test(`${CREATES} concurrent creates through two nodes leave no gap and no duplicate in a sequence`, async () => {
    expect(await numbered(engine, [])).toEqual({ made: CREATES, rejected: [], faults: [] })
  })

  test('rejected creates leave no gap in a sequence, before or after they got a number', async () => {
    const { made, rejected, faults } = await numbered(engine, ['unknown', 'taken'])
    expect(faults).toEqual([])
    expect([made, rejected.length]).toEqual([CREATES - 33, 33])
    expect(new Set(rejected)).toEqual(new Set(['invalid', 'not-unique']))
  })

  test('the mutant that reads a sequence number before it raises it is caught by the unique index', async () => {
    const { rejected } = await numbered(engine, [], numbersReadFirst)
    expect(rejected).toContain('not-unique')
  })

  test('the mutant that reads first, without the unique index, assigns duplicate numbers', async () => {
    const { faults } = await numbered(engine, [], numbersReadFirst, dropIndex)
    expect(faults).toContainEqual(expect.stringMatching(/was given \d+ times/))
  })
})

type Holder = 'unknown' | 'taken'

interface Numbered {
  readonly made: number
  /** The error kinds of rejected creates. */
  readonly rejected: readonly string[]
  readonly faults: readonly string[]
}

/** Every third badge is for a missing person (rejected before it gets a number) or for one who has a badge already (rejected after). */
async function numbered(
  engine: Engine,
  holders: readonly Holder[],
  mutant?: Mutant,
  prepare: (db: Database) => Promise<void> = async () => undefined,
): Promise<Numbered> {
  return onNodes(engine, { mutant, areTwo: true }, async (nodes) => {
    await prepare(nodes.db)
    const one = await enter(nodes.first.service, 'direct')
    const other = await enter(nodes.second.service, 'direct')
    const taken = await takenHolder(nodes)
    const dataOf = (index: number) => {
      const holder = index % 3 === 2 ? holders[Math.floor(index / 3) % holders.length] : undefined
      return holder ? { holder: { id: holder === 'taken' ? taken : SERVICE } } : {}
    }
    const outcomes = await Promise.allSettled(
      Array.from({ length: CREATES }, (_, index) =>
        (index % 2 === 0 ? one : other).create('rel.Badge', dataOf(index)),
      ),
    )
    const rejected = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [(outcome.reason as { readonly kind?: string }).kind ?? 'defect'] : [],
    )
    return { made: outcomes.length - rejected.length, rejected, faults: await faultsIn(nodes.db) }
  })
}

/** A person who has the first badge. */
async function takenHolder({ first }: Nodes): Promise<number> {
  const { data } = await first.client.create('rel.Person', { name: 'the first' })
  await first.client.create('rel.Badge', { holder: { id: data.id } })
  return data.id
}

async function faultsIn(db: Database): Promise<string[]> {
  const rows = await db.reader.all('select "number" from "rel.Badge" order by "number"')
  const given = new Map<number, number>()
  for (const row of rows) {
    const number = Number(String(row['number']).slice('B-'.length))
    given.set(number, (given.get(number) ?? 0) + 1)
  }
  const wanted = Array.from({ length: rows.length }, (_, index) => FIRST + index)
  return [
    ...[...given]
      .filter(([, times]) => times > 1)
      .map(([number, times]) => `${number} was given ${times} times`),
    ...wanted.filter((number) => !given.has(number)).map((number) => `${number} was left out`),
  ]
}

async function dropIndex(db: Database): Promise<void> {
  const index = quoteIdentifier(toIndexName('rel.Badge', true, ['number']))
  await db.transaction((tx) => tx.run(`drop index ${index}`))
}
