// A lane checks one or more promises under one kind of fault. It can be run alone; the page is composed of the stored results of all lanes.

export interface PromiseRow {
  /** A short name of the promise, unique among all lanes. */
  readonly bar: string
  readonly measured: string
  readonly isHeld: boolean
}

export interface LaneOptions {
  /** Multiplies how often a lane repeats its faults. */
  readonly scale: number
  readonly log: (line: string) => void
}

export interface Lane {
  readonly name: string
  /** One sentence: the faults, and how they are made. */
  readonly description: string
  readonly minutes: number
  /** The promises that the lane measures. The page lists them as not run until it has. */
  readonly bars: readonly string[]
  /** Root, or Debian packages. */
  readonly needs: string | undefined
  /** Why the lane cannot run here; undefined if it can. */
  readonly findObstacle: () => string | undefined
  readonly run: (options: LaneOptions) => Promise<readonly PromiseRow[]>
}
