// Answers of writes: of records that do not fit, the ids and versions.
import { isObject } from '../../model/values/value.js'
import type { WireRecord } from '../../wire.js'
import {
  fitsAnswer,
  estimateMinJsonBytes,
  computeAnswerRoom,
  type AnswerLimitApp,
} from '../context/answer-limits.js'

/** Answers a write. An answer that would be too large shows the id and the version of each record. */
export function shortenIfTooLarge<T>(app: AnswerLimitApp, written: T): T {
  if (fitsAnswer(app, written)) return written
  return (Array.isArray(written) ? written.map(toRecordKey) : toRecordKey(written)) as T
}

/** Of a removed record there is the id alone. */
export function toRecordKey(written: unknown): unknown {
  return isObject(written) ? { id: written['id'], version: written['version'] } : written
}

/** Keys that stand in the place of records that do not fit an answer. */
const SHORTENED_KEYS = new WeakSet<object>()

/** The id and the version of a record that does not fit an answer: those beside it are shortened, too. */
export function toShortenedKey({ id, version }: WireRecord): WireRecord {
  const key = { id, version }
  SHORTENED_KEYS.add(key)
  return key
}

/** Gathers what several writes answer. From the first record on that cannot fit, no more is read of the others than their keys. */
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
