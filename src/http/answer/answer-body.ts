// Bodies of answers, and where they wait until their clients have taken them: in memory, as long as there is little of it, else in a file.
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { StagingArea, StagedFile } from '../../store/engine/staging.js'

/** Smaller ones are not counted. */
const MIN_COUNTED_BODY_BYTES = 64 * 1024
/** Bodies that wait in memory for slow clients, all together. */
const MAX_BUFFERED_BODY_BYTES = 64 * 1024 * 1024

/** Text that is JSON already, or its bytes. */
export type JsonContent = string | Buffer
export type ResponseBody = JsonContent | StagedBody

/** A body in a file, with what stands before and behind it. */
export class StagedBody {
  readonly #start: Buffer
  readonly #end: Buffer

  constructor(
    private readonly file: StagedFile,
    start = '',
    end = '',
  ) {
    this.#start = Buffer.from(start)
    this.#end = Buffer.from(end)
  }

  get length(): number {
    return this.#start.length + this.file.size + this.#end.length
  }

  /** Can be taken once: when it is closed, read to its end or not, the file is gone. */
  stream(): Readable {
    return Readable.from(this.#chunks(), { objectMode: false }).once('close', () => {
      this.file.discard()
    })
  }

  discard(): void {
    this.file.discard()
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    if (this.#start.length > 0) yield this.#start
    yield* this.file.chunks()
    if (this.#end.length > 0) yield this.#end
  }
}

/** Counts the bodies that wait in memory. */
export class ResponseBuffer {
  #bytes = 0

  constructor(
    private readonly staging: StagingArea,
    /** What is larger does not wait in memory. */
    private readonly memoryBytes: number,
    private readonly maxBytes = MAX_BUFFERED_BODY_BYTES,
  ) {}

  /** How many bytes wait in memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** The body as it is to be sent. What tells of a write is sent in any case: whoever got a 503 would write again. */
  buffer(body: ResponseBody, response: ServerResponse, isWriteResult: boolean): ResponseBody {
    const isStaged = body instanceof StagedBody
    if (!isStaged && body.length <= MIN_COUNTED_BODY_BYTES) return body
    // Nobody waits for it any more, and no `close` will come. `closed` stays false for a response that never had the connection.
    if (response.destroyed) {
      if (isStaged) body.discard()
      return ''
    }
    if (isStaged) return discardOnClose(response, body)
    const bytes = Buffer.byteLength(body)
    if (bytes > this.memoryBytes || this.#bytes + bytes > this.maxBytes) {
      try {
        return discardOnClose(response, new StagedBody(this.staging.stage(body)))
      } catch (error) {
        if (!isWriteResult) throw error
      }
    }
    this.#bytes += bytes
    response.once('close', () => {
      this.#bytes -= bytes
    })
    return body
  }
}

/** The file is removed with the response, read to its end or not. */
function discardOnClose(response: ServerResponse, body: StagedBody): StagedBody {
  response.once('close', () => {
    body.discard()
  })
  return body
}
