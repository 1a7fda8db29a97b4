// Buffers response bodies until their clients have read them: in memory up to a limit, beyond it in files of the staging area.
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { StagingArea, StagedFile } from '../../store/engine/staging.js'

/** Smaller bodies are not counted, and never staged. */
export const MIN_COUNTED_BODY_BYTES = 64 * 1024
/** Total size of the bodies that may wait in memory for slow clients. */
const MAX_BUFFERED_BODY_BYTES = 64 * 1024 * 1024

/** JSON text, or its bytes in UTF-8. */
export type JsonContent = string | Buffer
export type ResponseBody = JsonContent | StagedBody

/** A body in a file, between the start and the end of its envelope. */
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

  /** May be called once. Closing the stream deletes the file, even if it was not read to the end. */
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

/** Limits the memory that unread response bodies occupy. */
export class ResponseBuffer {
  #bytes = 0
  /** The counted bytes of each response. */
  readonly #counted = new WeakMap<ServerResponse, number>()

  constructor(
    private readonly staging: StagingArea,
    /** Larger bodies go to a file. */
    private readonly memoryBytes: number,
    private readonly maxBytes = MAX_BUFFERED_BODY_BYTES,
  ) {}

  /** Bytes that wait in memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns the body to send, in memory or staged. A write result is sent even if staging fails: after a 503 the client would write again. */
  buffer(body: ResponseBody, response: ServerResponse, isWriteResult: boolean): ResponseBody {
    const isStaged = body instanceof StagedBody
    if (!isStaged && body.length <= MIN_COUNTED_BODY_BYTES) return body
    // The client is gone, and `close` was already emitted. `closed` stays false for a response that was never assigned the socket.
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
    this.#counted.set(response, bytes)
    response.once('close', () => {
      this.resize(response, 0)
    })
    return body
  }

  /** Counts another size for a body, because its compressed form replaces it. Does nothing for a body that is not counted. */
  resize(response: ServerResponse, bytes: number): void {
    const counted = this.#counted.get(response)
    if (counted === undefined) return
    this.#bytes += bytes - counted
    this.#counted.set(response, bytes)
  }
}

/** Deletes the file when the response is closed, even if it was not read to the end. */
function discardOnClose(response: ServerResponse, body: StagedBody): StagedBody {
  response.once('close', () => {
    body.discard()
  })
  return body
}
