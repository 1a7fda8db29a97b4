// Which requests an overloaded node refuses, in a simulated event loop whose requests cost constant times.
import { describe, expect, inject, test } from 'vitest'
import { LoadShedder } from '../../src/http/connection/load-shedder.js'
import { importMutantShedder, SHEDDER_MISTAKES, type ShedderMistake } from '../mutants/load-shedder.js'

const MAX_DELAY_MS = 100
/** The node answers 5,000 requests a second. */
const WORK_MS = 0.2
/** Writing a refusal; and with it reading the request, and what Node does after it. */
const REFUSAL_MS = { written: 0.012, total: 0.03 }
/** A commit, however many requests share it. */
const TURN_MS = 1
const CAPACITY = 1_000 / WORK_MS

interface Outcome {
  accepted: number
  refused: number
  readonly turnsMs: number[]
}

type Shedder = Pick<LoadShedder, 'startTurn' | 'accepts' | 'addRefusalTime'>
type CreateShedder = (times: () => { nowMs: number; idleMs: number }) => Shedder

class SimulatedLoop {
  nowMs = 1_000
  idleMs = 500
  readonly #shedder: Shedder

  constructor(create: CreateShedder = (times) => new LoadShedder(MAX_DELAY_MS, times)) {
    this.#shedder = create(() => ({ nowMs: this.nowMs, idleMs: this.idleMs }))
  }

  /** `countArrivals` returns the number of requests that arrive in a turn of this length. */
  run(seconds: number, countArrivals: (turnMs: number) => number, workMs = WORK_MS): Outcome {
    const outcome: Outcome = { accepted: 0, refused: 0, turnsMs: [] }
    const endMs = this.nowMs + seconds * 1_000
    let turnMs = 1
    let rest = 0
    while (this.nowMs < endMs) {
      const arrivals = countArrivals(turnMs) + rest
      rest = arrivals % 1
      if (arrivals < 1) {
        this.#wait(1)
        turnMs = 1
        continue
      }
      const startMs = this.nowMs
      this.#handle(Math.floor(arrivals), workMs, outcome)
      turnMs = this.nowMs - startMs
      outcome.turnsMs.push(turnMs)
    }
    return outcome
  }

  runAtRate(seconds: number, perSecond: number): Outcome {
    return this.run(seconds, (turnMs) => (perSecond * turnMs) / 1_000)
  }

  #handle(arrivals: number, workMs: number, outcome: Outcome): void {
    let accepted = 0
    for (let arrival = 0; arrival < arrivals; arrival++) {
      if (this.#shedder.accepts()) accepted++
      else this.#shedder.addRefusalTime(REFUSAL_MS.written)
    }
    const refused = arrivals - accepted
    this.nowMs += refused * REFUSAL_MS.total
    this.#shedder.startTurn()
    this.nowMs += TURN_MS + accepted * workMs
    outcome.accepted += accepted
    outcome.refused += refused
  }

  #wait(ms: number): void {
    this.nowMs += ms
    this.idleMs += ms
  }
}

const SECONDS = 20
const largest = ({ turnsMs }: Outcome) => Math.max(...turnsMs.slice(turnsMs.length >> 1))

/** Each returns what should be refused, answered or awaited, and is not. */
const findFaults = {
  goodput: (create?: CreateShedder) =>
    [1.2, 2, 3, 5].filter((factor) => {
      const loop = new SimulatedLoop(create)
      loop.runAtRate(2, CAPACITY * factor)
      const { accepted } = loop.runAtRate(SECONDS, CAPACITY * factor)
      // Refusals take time too: what is left of a second after refusing all others.
      const share = (1 - factor * (REFUSAL_MS.total / WORK_MS)) / (1 - REFUSAL_MS.total / WORK_MS)
      return accepted / SECONDS / CAPACITY < share * 0.85
    }),
  delay: (create?: CreateShedder) =>
    [1.2, 2, 3, 5].filter((factor) => {
      const loop = new SimulatedLoop(create)
      loop.runAtRate(2, CAPACITY * factor)
      return largest(loop.runAtRate(SECONDS, CAPACITY * factor)) > MAX_DELAY_MS * 0.8
    }),
  'clients that repeat refused requests at once': (create?: CreateShedder) => {
    const loop = new SimulatedLoop(create)
    loop.run(8, () => 10_000)
    const { accepted } = loop.run(SECONDS, () => 10_000)
    return accepted / SECONDS / CAPACITY > 0.15 ? [] : [accepted]
  },
  'requests that become longer': (create?: CreateShedder) => {
    const loop = new SimulatedLoop(create)
    const arrive = (turnMs: number) => (CAPACITY * 2 * turnMs) / 1_000
    loop.run(5, arrive)
    const turnMs = largest(loop.run(SECONDS, arrive, WORK_MS * 10))
    return turnMs > MAX_DELAY_MS ? [turnMs] : []
  },
  'time after the overload': (create?: CreateShedder) => {
    const loop = new SimulatedLoop(create)
    if (loop.runAtRate(5, CAPACITY * 2).refused === 0) return ['nothing is refused']
    loop.runAtRate(2, CAPACITY * 0.8)
    const later = loop.runAtRate(1, CAPACITY * 0.8).refused
    // One burst is refused in part while the limit holds.
    return [later, loop.run(0.01, () => 2_000).refused].filter((refused) => refused > 0)
  },
  'moderate load': (create?: CreateShedder) =>
    [0.1, 0.8, 0.95].filter(
      (factor) => new SimulatedLoop(create).runAtRate(SECONDS, CAPACITY * factor).refused > 0,
    ),
  'a burst and a garbage collection': (create?: CreateShedder) => {
    const loop = new SimulatedLoop(create)
    // Three turns.
    const burst = loop.run(0.9, () => 2_000).refused
    loop.runAtRate(1, CAPACITY * 0.5)
    loop.nowMs += 900
    return [burst, loop.runAtRate(1, CAPACITY * 0.5).refused].filter((refused) => refused > 0)
  },
  'few clients with long requests': (create?: CreateShedder) => {
    const { refused } = new SimulatedLoop(create).run(SECONDS, () => 8, 60)
    return refused > 0 ? [refused] : []
  },
  'a burst after a pause': (create?: CreateShedder) => {
    const loop = new SimulatedLoop(create)
    loop.runAtRate(5, CAPACITY * 2)
    loop.run(60, () => 0)
    const { refused } = loop.run(0.01, () => 200)
    return refused > 0 ? [refused] : []
  },
  'long work between rare requests': (create?: CreateShedder) => {
    const loop = new SimulatedLoop(create)
    for (let request = 0; request < 20; request++) {
      loop.run(0.001, () => 1)
      loop.nowMs += 150
      loop.run(0.85, () => 0)
    }
    const { refused } = loop.run(0.01, () => 200)
    return refused > 0 ? [refused] : []
  },
  'time that the event loop waits': (create?: CreateShedder) => {
    let turn = 0
    // 2 ms of work in each 200 ms.
    const { refused } = new SimulatedLoop(create).run(SECONDS, () => (turn++ % 200 === 0 ? 10 : 0))
    return refused > 0 ? [refused] : []
  },
}

describe('a simulated event loop', () => {
  test.each(Object.entries(findFaults))('%s', (_, find) => {
    expect(find()).toEqual([])
  })

  test('without a limit, turns grow until the clients give up', () => {
    const none = { startTurn: () => undefined, accepts: () => true, addRefusalTime: () => undefined }
    expect(largest(new SimulatedLoop(() => none).runAtRate(SECONDS, CAPACITY * 2))).toBeGreaterThan(2_000)
  })

  test.each(Object.keys(SHEDDER_MISTAKES) as ShedderMistake[])(
    'the mutant is caught: %s',
    async (mistake) => {
      const { LoadShedder: Mutant } = await importMutantShedder(inject('runFolder'), mistake)
      const create: CreateShedder = (times) => new Mutant(MAX_DELAY_MS, times)
      const faults = Object.entries(findFaults).filter(([, find]) => find(create).length > 0)
      expect(faults.map(([name]) => name)).toContain(SHEDDER_MISTAKES[mistake].fault)
    },
  )
})
