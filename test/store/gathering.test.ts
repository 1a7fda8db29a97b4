// Whoever asks while others are being answered is told nothing that was read before they asked.
import { expect, test } from 'vitest'
import { Batcher, type BatchFunction } from '../../src/store/engine/batcher.js'

type Together = <I, O>(key: string, input: I, run: BatchFunction<I, O>) => Promise<O>

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** What two are told of a number that grows after the first has asked and before the second does, and how often it was read. */
async function askTwice(together: Together): Promise<{ told: number[]; reads: number }> {
  let [current, reads] = [1, 0]
  const ask = () =>
    together('number', undefined, async (askers) => {
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
  'with %i under way at once, those who come later are told what is there by then',
  async (maxConcurrent) => {
    const gathering = new Batcher({ maxInputs: 32, maxConcurrent })
    const together: Together = (key, input, run) => gathering.batch(key, input, run)
    expect(await askTwice(together)).toEqual({ told: [1, 2, 2], reads: 2 })
  },
)

test('who is told what others are already being told is found out', async () => {
  const underWay = new Map<string, Promise<unknown>>()
  const joining: Together = async (key, input, run) => {
    const answer = underWay.get(key) ?? run([input]).then(([output]) => output)
    underWay.set(key, answer)
    return answer as never
  }
  expect((await askTwice(joining)).told).not.toEqual([1, 2, 2])
})
