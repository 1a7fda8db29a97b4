// Requests of one tick are handled as one batch, and each sees everything that was written before it arrived.
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { batchPerTick } from '../../src/http/fastify.js'

let folder: string
let writer: InstanceType<typeof DatabaseSync>
let reader: InstanceType<typeof DatabaseSync>

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'verso-turns-'))
  const file = path.join(folder, 'turns.db')
  writer = new DatabaseSync(file)
  writer.exec('pragma journal_mode = wal; create table t (n integer); insert into t values (0)')
  reader = new DatabaseSync(file, { readOnly: true })
})
afterEach(() => {
  reader.close()
  writer.close()
  rmSync(folder, { recursive: true })
})

const shown = () => (reader.prepare('select n from t').all()[0] as { n: number }).n
const inOneMoment = (work: () => void) => {
  reader.exec('begin')
  work()
  reader.exec('commit')
}

type Turns = (
  listener: RequestListener,
  inOneMoment: (work: () => void) => void,
  atTurnEnd: (work: () => void) => void,
) => RequestListener

/** The values that three requests read; another process writes before each of them, in the same tick. */
async function threeOfATurn(turns: Turns): Promise<{ shown: number[]; moments: number }> {
  const answers: number[] = []
  let moments = 0
  const listener = turns(
    () => answers.push(shown()),
    (work) => {
      moments++
      inOneMoment(work)
    },
    setImmediate,
  )
  const arrive = () => {
    listener({} as IncomingMessage, {} as ServerResponse)
  }
  for (let n = 1; n <= 3; n++) {
    writer.exec(`update t set n = ${n}`)
    arrive()
  }
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  return { shown: answers, moments }
}

/** Each request read the value at its arrival, or a later one. */
const isFresh = ({ shown }: { shown: number[] }) => shown.length === 3 && shown.every((n, index) => n > index)

test('the requests of one tick read one snapshot, taken after the last of them arrived', async () => {
  expect(await threeOfATurn(batchPerTick)).toEqual({ shown: [3, 3, 3], moments: 1 })
})

test('a new tick takes a new snapshot', async () => {
  expect(isFresh(await threeOfATurn(batchPerTick))).toBe(true)
  writer.exec('update t set n = 0')
  expect(await threeOfATurn(batchPerTick)).toEqual({ shown: [3, 3, 3], moments: 1 })
})

test('the mutant that takes the snapshot with the first request of a tick is caught', async () => {
  const hasty: Turns = (listener) => {
    let isOpen = false
    return (request, response) => {
      if (!isOpen) {
        isOpen = true
        reader.exec('begin')
        shown()
        setImmediate(() => {
          isOpen = false
          reader.exec('commit')
        })
      }
      listener(request, response)
    }
  }
  expect(isFresh(await threeOfATurn(hasty))).toBe(false)
})
