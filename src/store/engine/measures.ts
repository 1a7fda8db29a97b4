// The load of an engine: waiting calls, commits and sizes.

/** For metrics. */
export interface DatabaseMeasures {
  /** The number of commits since the start, by the number of transactions that joined each of them. */
  readonly groupSizes: ReadonlyMap<number, number>
  /** Sizes of the database file, its write-ahead log and the free space on its disk. Absent if the engine stores nothing on this machine. */
  readonly bytes?: { readonly database: number; readonly wal: number; readonly free: number }
}

/** Calls that wait for their turn. */
export interface WaitingCalls {
  readonly count: number
  /** When the first of them came, on the clock of `performance.now()`; Infinity without one. */
  readonly sinceMs: number
}

export function sumWaiting(all: readonly WaitingCalls[]): WaitingCalls {
  return {
    count: all.reduce((sum, { count }) => sum + count, 0),
    sinceMs: Math.min(...all.map(({ sinceMs }) => sinceMs)),
  }
}
