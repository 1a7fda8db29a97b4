// What is asked at the same time travels together: one statement for all of it. Nobody is waited for: what comes first goes at once,
// and what comes while that is under way gathers until it is back.

/** Answers one output for each input, in their order. */
export type BatchFunction<I, O> = (inputs: readonly I[]) => Promise<readonly O[]>

interface PendingInput {
  readonly input: unknown
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
}

/** What has the same key, and so can be asked in one go. */
interface BatchQueue {
  readonly run: BatchFunction<unknown, unknown>
  pending: PendingInput[]
  running: number
  isScheduled: boolean
}

export interface BatcherOptions {
  /** How many inputs go together. */
  readonly maxInputs: number
  /** How many of one key may be under way; any number, if absent. */
  readonly maxConcurrent?: number
  /** When that is which is asked at the same time; by the end of this turn of the event loop, if absent. */
  readonly schedule?: (go: () => void) => void
  /** Where one that fails takes everything with it there is no use in asking each alone. */
  readonly rejectsAll?: boolean
}

export class Batcher {
  readonly #queues = new Map<string, BatchQueue>()
  readonly #maxInputs: number
  readonly #maxConcurrent: number
  readonly #schedule: (go: () => void) => void
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

  async batch<I, O>(key: string, input: I, run: BatchFunction<I, O>): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      const queue = this.#queues.get(key) ?? {
        run: run as BatchFunction<unknown, unknown>,
        ...EMPTY_QUEUE,
        pending: [],
      }
      this.#queues.set(key, queue)
      queue.pending.push({ input, resolve: resolve as PendingInput['resolve'], reject })
      if (queue.isScheduled || queue.running >= this.#maxConcurrent) return
      queue.isScheduled = true
      // What has arrived meanwhile is heard first: that takes no time when there is nothing.
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

  /** Whoever asks for what cannot be had is told so; the others have their answers. */
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

const EMPTY_QUEUE = { running: 0, isScheduled: false } as const
