// What is asked at the same time travels together: one statement for all of it. Nobody is waited for: what comes first goes at once,
// and what comes while that is under way gathers until it is back.

/** Answers one output for each input, in their order. */
export type Run<I, O> = (inputs: readonly I[]) => Promise<readonly O[]>

interface Asked {
  readonly input: unknown
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
}

/** What has the same key, and so can be asked in one go. */
interface Gathered {
  readonly run: Run<unknown, unknown>
  asked: Asked[]
  underWay: number
  isDue: boolean
}

export interface GatheringOptions {
  /** How many inputs go together. */
  readonly most: number
  /** How many of one key may be under way; any number, if absent. */
  readonly atOnce?: number
  /** When that is which is asked at the same time; by the end of this turn of the event loop, if absent. */
  readonly when?: (go: () => void) => void
  /** Where one that fails takes everything with it there is no use in asking each alone. */
  readonly failsWhole?: boolean
}

export class Gathering {
  readonly #byKey = new Map<string, Gathered>()
  readonly #most: number
  readonly #atOnce: number
  readonly #when: (go: () => void) => void
  readonly #failsWhole: boolean

  constructor({ most, atOnce = Infinity, when = setImmediate, failsWhole = false }: GatheringOptions) {
    this.#most = most
    this.#atOnce = atOnce
    this.#when = when
    this.#failsWhole = failsWhole
  }

  async together<I, O>(key: string, input: I, run: Run<I, O>): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      const gathered = this.#byKey.get(key) ?? { run: run as Run<unknown, unknown>, ...NOTHING, asked: [] }
      this.#byKey.set(key, gathered)
      gathered.asked.push({ input, resolve: resolve as Asked['resolve'], reject })
      if (gathered.isDue || gathered.underWay >= this.#atOnce) return
      gathered.isDue = true
      // What has arrived meanwhile is heard first: that takes no time when there is nothing.
      this.#when(() => {
        gathered.isDue = false
        this.#go(key, gathered)
      })
    })
  }

  #go(key: string, gathered: Gathered): void {
    if (gathered.asked.length === 0) {
      if (gathered.underWay === 0) this.#byKey.delete(key)
      return
    }
    const some = gathered.asked.splice(0, this.#most)
    gathered.underWay += 1
    void this.#answer(gathered.run, some).then(() => {
      gathered.underWay -= 1
      if (!gathered.isDue) this.#go(key, gathered)
    })
  }

  /** Whoever asks for what cannot be had is told so; the others have their answers. */
  async #answer(run: Run<unknown, unknown>, asked: readonly Asked[]): Promise<void> {
    try {
      const outputs = await run(asked.map(({ input }) => input))
      asked.forEach(({ resolve }, index) => {
        resolve(outputs[index])
      })
    } catch (error) {
      if (asked.length === 1 || this.#failsWhole) for (const { reject } of asked) reject(error)
      else await Promise.all(asked.map((each) => this.#answer(run, [each])))
    }
  }
}

const NOTHING = { underWay: 0, isDue: false } as const
