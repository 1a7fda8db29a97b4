// A call that arrives while a batch is in flight gets no value that was read before the call.
import { expect, test } from 'vitest'
import { Batcher, type BatchFunction } from '../../src/store/engine/batcher.js'

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
