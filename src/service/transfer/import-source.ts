// The input of an import, and the errors about its lines.
import { ConfigError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'

/** A line of a file: its value, or the reason why it cannot be read. */
export interface RawLine {
  /** The line number in the file, from 1. */
  readonly line: number
  readonly input?: unknown
  readonly error?: string
}

/** The records of one model. An import reads them twice: to check and to write them. */
export interface ImportSource {
  /** The file name, for messages. */
  readonly name: string
  readonly model: Model
  /** Reads all lines from the start, in batches that fit into memory. */
  read(): AsyncIterable<readonly RawLine[]>
  /** Opens the content with this digest. Resolves with undefined if it is missing. */
  readonly content?: (sha256: string) => Promise<AsyncIterable<Uint8Array> | undefined>
}

/** An error about one line during the write. The whole batch is rolled back. */
export class LineError extends Error {
  constructor(
    readonly line: number,
    message: string,
  ) {
    super(message)
    this.name = 'LineRefused'
  }
}

const MAX_LISTED_ERRORS = 100

/** Collects errors by line: the first `MAX_LISTED_ERRORS` with their text, the rest as a count. */
export class LineErrors {
  readonly #messages: string[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add({ name }: ImportSource, line: number, message: string): void {
    this.addText(`${name}:${line}: ${message}`)
  }

  addText(text: string): void {
    if (++this.#count <= MAX_LISTED_ERRORS) this.#messages.push(text)
  }

  refuseIfAny(what: string): void {
    if (this.#count === 0) return
    const more = this.#count - this.#messages.length
    throw new ConfigError(what, [...this.#messages, ...(more > 0 ? [`and ${more} more`] : [])])
  }
}
