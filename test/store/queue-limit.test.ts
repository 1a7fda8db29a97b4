// Which requests are refused while a database is overloaded, in a simulated queue whose calls cost constant times.
import { describe, expect, inject, test } from 'vitest'
import { QueueLimit } from '../../src/store/engine/queue-limit.js'
import { importMutantQueueLimit, QUEUE_MISTAKES, type QueueMistake } from '../mutants/queue-limit.js'

const MAX_DELAY_MS = 100
const TURN_MS = 20
/** The database answers 2,000 requests a second. */
const WORK_MS = 0.5
const CAPACITY = 1_000 / WORK_MS

interface Outcome {
  answered: number
  refused: number
  /** Of each answered request. */
  readonly waitsMs: number[]
}

type Limit = Pick<QueueLimit, 'startTurn' | 'hasRoom' | 'add'>
type CreateLimit = () => Limit

class SimulatedQueue {
  nowMs = 1_000
  readonly #queuedAtMs: number[] = []
  #freeAtMs = 0
  #rest = 0

  constructor(private readonly limit: Limit = new QueueLimit(MAX_DELAY_MS)) {}

  run(seconds: number, perSecond: number, workMs = WORK_MS): Outcome {
    const outcome: Outcome = { answered: 0, refused: 0, waitsMs: [] }
    for (const endMs = this.nowMs + seconds * 1_000; this.nowMs < endMs; this.nowMs += TURN_MS) {
      this.#answer(workMs, outcome)
      const arrivals = (perSecond * TURN_MS) / 1_000 + this.#rest
      this.#rest = arrivals % 1
      if (arrivals < 1) continue
      this.limit.startTurn(
        { count: this.#queuedAtMs.length, sinceMs: this.#queuedAtMs[0] ?? Infinity },
        this.nowMs,
      )
      for (let arrival = 0; arrival < Math.floor(arrivals); arrival++)
        if (this.limit.hasRoom()) {
          this.limit.add()
          this.#queuedAtMs.push(this.nowMs)
        } else outcome.refused++
    }
    return outcome
  }

  /** The database answers nothing for this time. */
  lock(ms: number): void {
    this.#freeAtMs = this.nowMs + ms
  }

  #answer(workMs: number, outcome: Outcome): void {
    this.#freeAtMs = Math.max(this.#freeAtMs, this.nowMs - TURN_MS)
    for (; this.#queuedAtMs.length > 0 && this.#freeAtMs + workMs <= this.nowMs; this.#freeAtMs += workMs) {
      outcome.answered++
      outcome.waitsMs.push(this.#freeAtMs - (this.#queuedAtMs.shift() ?? NaN))
    }
  }
}

const SECONDS = 10
const FACTORS = [1.2, 2, 5]
const isPoor = ({ answered }: Outcome) => answered / SECONDS / CAPACITY < 0.95

/** Each returns what should be answered, refused or awaited, and is not. */
const findFaults = {
  goodput: (create?: CreateLimit) =>
    FACTORS.filter((factor) => {
      const queue = new SimulatedQueue(create?.())
      queue.run(10, CAPACITY * factor)
      return isPoor(queue.run(SECONDS, CAPACITY * factor))
    }),
  'goodput after a pause': (create?: CreateLimit) => {
    const queue = new SimulatedQueue(create?.())
    queue.run(10, CAPACITY * 2)
    queue.run(0.5, 200)
    const seconds = 0.06
    const arrivals = CAPACITY * 10 * seconds
    const accepted = arrivals - queue.run(seconds, CAPACITY * 10).refused
    // As much as the database answers in that time, and more in the queue.
    return accepted < CAPACITY * seconds ? [accepted] : []
  },
  delay: (create?: CreateLimit) =>
    FACTORS.filter((factor) => {
      const queue = new SimulatedQueue(create?.())
      queue.run(10, CAPACITY * factor)
      return Math.max(...queue.run(SECONDS, CAPACITY * factor).waitsMs) > MAX_DELAY_MS * 1.3
    }),
  'time after the overload': (create?: CreateLimit) => {
    const queue = new SimulatedQueue(create?.())
    if (queue.run(10, CAPACITY * 2).refused === 0) return ['nothing is refused']
    queue.run(2, CAPACITY * 0.8)
    // A burst is refused in part while the limit holds.
    return [queue.run(0.1, CAPACITY * 8).refused].filter((refused) => refused > 0)
  },
  'moderate load': (create?: CreateLimit) =>
    [0.1, 0.8, 0.95].filter(
      (factor) => new SimulatedQueue(create?.()).run(SECONDS, CAPACITY * factor).refused > 0,
    ),
  'a lock': (create?: CreateLimit) => {
    const queue = new SimulatedQueue(create?.())
    queue.run(1, CAPACITY * 0.5)
    queue.lock(700)
    const { refused } = queue.run(SECONDS, CAPACITY * 0.5)
    return refused > 0 ? [refused] : []
  },
  'few clients with long statements': (create?: CreateLimit) => {
    const queue = new SimulatedQueue(create?.())
    // The first of ten calls waits for more than a second.
    queue.lock(5_000)
    queue.run(5, 2)
    const { refused } = queue.run(3, 1, 300)
    return refused > 0 ? [refused] : []
  },
}

describe('a simulated queue', () => {
  test.each(Object.entries(findFaults))('%s', (_, find) => {
    expect(find()).toEqual([])
  })

  test('without a limit, waits grow until the clients give up', () => {
    const none = { startTurn: () => undefined, hasRoom: () => true, add: () => undefined }
    expect(Math.max(...new SimulatedQueue(none).run(SECONDS, CAPACITY * 2).waitsMs)).toBeGreaterThan(2_000)
  })

  test.each(Object.keys(QUEUE_MISTAKES) as QueueMistake[])('the mutant is caught: %s', async (mistake) => {
    const { QueueLimit: Mutant } = await importMutantQueueLimit(inject('runFolder'), mistake)
    const create: CreateLimit = () => new Mutant(MAX_DELAY_MS)
    const faults = Object.entries(findFaults).filter(([, find]) => find(create).length > 0)
    expect(faults.map(([name]) => name)).toContain(QUEUE_MISTAKES[mistake].fault)
  })
})
