// Batches concurrent calls with the same key into one statement. A batch starts at the end of the current tick; calls that arrive while the
// allowed number of batches is running form the next one. Batching adds no delay.

import type { BatchWork } from './database.js'
import { sumWaiting, type WaitingCalls } from './measures.js'

/** Returns one output for each input, in the same order. */
export type BatchFunction<I, O> = (inputs: readonly I[]) => Promise<readonly O[]>

interface PendingInput {
  readonly queuedAtMs: number
  readonly input: unknown
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The pending inputs of one key. */
interface BatchQueue {
  readonly run: BatchFunction<unknown, unknown>
  pending: PendingInput[]
  running: number
  isScheduled: boolean
}

export interface BatcherOptions {
  /** The largest number of inputs in one batch. */
  readonly maxInputs: number
  /** The largest number of batches of one key that run at the same time; unlimited by default. */
  readonly maxConcurrent?: number
  /** When a new batch starts; `setImmediate` by default. */
  readonly schedule?: (flush: () => void) => void
  /** Rejects every call of a failed batch. By default each input is retried alone. */
  readonly rejectsAll?: boolean
}

export class Batcher {
  readonly #queues = new Map<string, BatchQueue>()
  readonly #maxInputs: number
  readonly #maxConcurrent: number
  readonly #schedule: (flush: () => void) => void
  readonly #rejectsAll: boolean

  constructor({
    maxInputs,
    maxConcurrent = Infinity,
    schedule = setImmediate,
    rejectsAll = false,
  }: BatcherOptions) {
    this.#maxInputs = maxInputs
    this.#maxConcurrent = maxConcurrent
    this.#schedule = schedule
    this.#rejectsAll = rejectsAll
  }

  /** The calls that wait for a batch, and when the first of them came. */
  get waiting(): WaitingCalls {
    const queues = [...this.#queues.values()]
    return sumWaiting(
      queues.map(({ pending }) => ({ count: pending.length, sinceMs: pending[0]?.queuedAtMs ?? Infinity })),
    )
  }

  /** Like `batch`. A batch with a single input runs `runOne`. */
  run<D, I, O, R>(work: BatchWork<D, I, O, R>, db: D, input: I): Promise<O | R> {
    return this.batch(work.key, input, async (inputs) => {
      const [first] = inputs
      return inputs.length === 1 ? [await work.runOne(db, first as I)] : work.runMany(db, inputs)
    })
  }

  /** Adds the input to the next batch of the key; resolves with the output at the same index. */
  async batch<I, O>(key: string, input: I, run: BatchFunction<I, O>): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      const queue = this.#queues.get(key) ?? {
        run: run as BatchFunction<unknown, unknown>,
        pending: [],
        running: 0,
        isScheduled: false,
      }
      this.#queues.set(key, queue)
      queue.pending.push({
        queuedAtMs: performance.now(),
        input,
        resolve: resolve as PendingInput['resolve'],
        reject,
      })
      if (queue.isScheduled || queue.running >= this.#maxConcurrent) return
      queue.isScheduled = true
      // Requests that have arrived already are read first, so their calls join this batch.
      this.#schedule(() => {
        queue.isScheduled = false
        this.#flush(key, queue)
      })
    })
  }

  #flush(key: string, queue: BatchQueue): void {
    if (queue.pending.length === 0) {
      if (queue.running === 0) this.#queues.delete(key)
      return
    }
    const inputs = queue.pending.splice(0, this.#maxInputs)
    queue.running += 1
    void this.#runBatch(queue.run, inputs).then(() => {
      queue.running -= 1
      if (!queue.isScheduled) this.#flush(key, queue)
    })
  }

  /** Retries the inputs of a failed batch one by one, so that only the faulty calls are rejected. */
  async #runBatch(run: BatchFunction<unknown, unknown>, pending: readonly PendingInput[]): Promise<void> {
    try {
      const outputs = await run(pending.map(({ input }) => input))
      pending.forEach(({ resolve }, index) => {
        resolve(outputs[index])
      })
    } catch (error) {
      if (pending.length === 1 || this.#rejectsAll) for (const { reject } of pending) reject(error)
      else await Promise.all(pending.map((each) => this.#runBatch(run, [each])))
    }
  }
}
