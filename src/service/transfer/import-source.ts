// What an import reads, and what it says of it.
import { ConfigError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'

/** A line of a file: what it holds, or why it cannot be read. */
export interface RawLine {
  /** Its number in the file, from 1. */
  readonly line: number
  readonly input?: unknown
  readonly fault?: string
}

/** The records of one model. Read twice: to be checked, and to be written. */
export interface ImportSource {
  /** As people know it: the name of the file. */
  readonly name: string
  readonly model: Model
  /** Portions of a bearable size, from the beginning. */
  read(): AsyncIterable<readonly RawLine[]>
  /** The content that has this digest, from its beginning; undefined if there is none. */
  readonly content?: (sha256: string) => Promise<AsyncIterable<Uint8Array> | undefined>
}

/** What is wrong with one line, found while it was written: the whole portion is undone. */
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

/** Every fault by its line: the first ones in words, the rest as a number. */
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
