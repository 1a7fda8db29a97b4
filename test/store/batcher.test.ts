// A call that arrives while a batch is in flight gets no value that was read before the call.
import { describe, expect, test } from 'vitest'
import { Batcher, type BatchFunction } from '../../src/store/engine/batcher.js'
import type { Queryable } from '../../src/store/engine/database.js'
import { PostgresQueryPool, PostgresReader } from '../../src/store/postgres/queryables.js'

type Batch = <I, O>(key: string, input: I, run: BatchFunction<I, O>) => Promise<O>

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** The answers to three calls while a number grows after the first one, and how often the number was read. */
async function askTwice(batch: Batch): Promise<{ told: number[]; reads: number }> {
  let [current, reads] = [1, 0]
  const ask = () =>
    batch('number', undefined, async (askers) => {
      reads++
      const read = current
      for (let turns = 0; turns < 5; turns++) await turn()
      return askers.map(() => read)
    })
  const first = ask()
  while (reads === 0) await turn()
  current = 2
  return { told: await Promise.all([first, ask(), ask()]), reads }
}

test.each([1, 2])(
  'with %i batches in flight, later calls get a value read after they arrived',
  async (maxConcurrent) => {
    const batcher = new Batcher({ maxInputs: 32, maxConcurrent })
    const batch: Batch = (key, input, run) => batcher.batch(key, input, run)
    expect(await askTwice(batch)).toEqual({ told: [1, 2, 2], reads: 2 })
  },
)

test('a mutant that joins a batch in flight is caught', async () => {
  const underWay = new Map<string, Promise<unknown>>()
  const joining: Batch = async (key, input, run) => {
    const answer = underWay.get(key) ?? run([input]).then(([output]) => output)
    underWay.set(key, answer)
    return answer as never
  }
  expect((await askTwice(joining)).told).not.toEqual([1, 2, 2])
})

describe.each([
  { name: 'reader', open: (all: Queryable['all']): Queryable => new PostgresReader(all) },
  {
    name: 'query pool',
    open: (all: Queryable['all']): Queryable =>
      new PostgresQueryPool(
        all,
        () => expect.unreachable(),
        () => expect.unreachable(),
      ),
  },
])('equal statements of the $name', ({ open }) => {
  /** Answers each statement with its parameters, and lists the statements. */
  function openEcho() {
    const ran: string[] = []
    const db = open((sql, params = []) => {
      ran.push(`${sql} ${params.join()}`)
      return Promise.resolve([{ sql, params: params.join() }])
    })
    return { db, ran }
  }

  test('run once, and those with other parameters alone', async () => {
    const { db, ran } = openEcho()
    const asked = [1, 2, 1, 1, 2].map((param) => db.allShared('select ?', [param]))
    const told = (await Promise.all(asked)).map(([row]) => row?.['params'])
    expect(told).toEqual(['1', '2', '1', '1', '2'])
    expect(ran).toEqual(['select ? 1', 'select ? 2'])
  })

  test('read everything that was committed before the call', async () => {
    const releases: (() => void)[] = []
    let [current, started] = [1, 0]
    const db = open(async () => {
      const read = current
      started += 1
      // The first two statements run until they are released.
      if (started <= 2) await new Promise<void>((resolve) => releases.push(resolve))
      return [{ read }]
    })
    const ask = async () => (await db.allShared('select', []))[0]?.['read']
    const first = ask()
    while (started === 0) await turn()
    const second = ask()
    while (started === 1) await turn()
    current = 2
    const later = [ask(), ask()]
    for (let turns = 0; turns < 5; turns++) await turn()
    expect(started).toBe(2)
    for (const release of releases) release()
    expect(await Promise.all([first, second, ...later])).toEqual([1, 1, 2, 2])
    expect(started).toBe(3)
  })

  test('give their rows to at most 32 callers in one turn of the event loop', async () => {
    const { db, ran } = openEcho()
    /** The number of answers in each turn. */
    const answers: number[] = []
    let isDone = false
    const countTurns = async () => {
      while (!isDone) {
        answers.push(0)
        await turn()
      }
    }
    const counting = countTurns()
    const ask = async () => {
      await db.allShared('select', [])
      answers.push((answers.pop() ?? 0) + 1)
    }
    await Promise.all(Array.from({ length: 100 }, ask))
    isDone = true
    await counting
    expect(ran).toHaveLength(1)
    expect(answers.filter((count) => count > 0)).toEqual([32, 32, 32, 4])
  })

  test('fail together, and do not run again', async () => {
    let runs = 0
    const db = open(() => {
      runs++
      return Promise.reject(new Error('past its limit'))
    })
    const asked = await Promise.allSettled([1, 2, 3].map(() => db.allShared('select', [])))
    expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(runs).toBe(1)
  })
})
