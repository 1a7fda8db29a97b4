// Builds the answers of writes. Records that do not fit are answered with id and version.
import { isObject } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import { estimateMinJsonBytes, computeAnswerRoom, type AnswerLimitApp } from './answer-limits.js'

/** Shortens the answer of a write that is too large to the id and the version of each record. */
export function shortenAnswer<T>(written: T): T {
  return (Array.isArray(written) ? written.map(toRecordKey) : toRecordKey(written)) as T
}

/** A removed record has only an id. */
export function toRecordKey(written: unknown): unknown {
  return isObject(written) ? { id: written['id'], version: written['version'] } : written
}

/** Marks the keys that replace records which do not fit an answer. */
const SHORTENED_KEYS = new WeakSet<object>()

/** Returns the id and the version of a record that does not fit. The records beside it are shortened, too. */
export function toShortenedKey({ id, version }: WireRecord): WireRecord {
  const key = { id, version }
  SHORTENED_KEYS.add(key)
  return key
}

/** Collects the answers of several writes. After the first record that does not fit, it reads only keys. */
export class AnswerCollector<T> {
  #answers: T[] = []
  #minBytes = 0

  constructor(private readonly app: AnswerLimitApp) {}

  get isFull(): boolean {
    return this.#minBytes > computeAnswerRoom(this.app.settings)
  }

  add(answer: T): void {
    const wasFull = this.isFull
    this.#minBytes += isObject(answer) && SHORTENED_KEYS.has(answer) ? Infinity : estimateMinJsonBytes(answer)
    this.#answers.push(answer)
    if (this.isFull && !wasFull) this.#answers = this.#answers.map((each) => toRecordKey(each) as T)
  }

  all(): T[] {
    return this.#answers
  }
}
