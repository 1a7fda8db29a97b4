// Reads a `multipart/form-data` form with a file: streams the file to its sink while it arrives, and keeps the other parts in memory.
import { shortenForMessage } from '../../model/values/did-you-mean.js'
import type { IncomingMessage } from 'node:http'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { FastifyInstance } from 'fastify'
import { VersoError } from '../../errors.js'
import type { FieldSelection } from '../../model/query/selection.js'
import {
  parseJsonBody,
  readDataObject,
  readFieldSelection,
  refuseContentEncoding,
} from '../request/bodies.js'

/** A form has three parts. Forms with more than this are rejected unread. */
const MAX_FORM_PARTS = 8
const MAX_PART_HEADER_BYTES = 8_192
const MAX_PART_HEADERS = 16
const MAX_FIELD_PART_BYTES = 1_024

/** Transfer encodings that need no decoding. */
const PLAIN_ENCODINGS = ['7bit', '8bit', 'binary']

const FORM_PARTS = ['request', 'field', 'file'] as const
type FormPartName = (typeof FORM_PARTS)[number]

export interface UploadForm<F> {
  /** The record values of the part `request`. */
  readonly data: unknown
  /** The fields that the response contains. */
  readonly fieldSelection: FieldSelection | undefined
  readonly field: string | undefined
  readonly file: F
  /** The file name as the client sent it. */
  readonly fileName: string | undefined
}

/** Stores the file while it arrives. */
export interface UploadSink<F> {
  receive(content: AsyncIterable<Uint8Array>): Promise<F>
  /** Deletes a received file when the rest of the form is invalid. */
  discard(file: F): Promise<void>
}

/** Accepts forms only and leaves their bodies unread; `readForm` reads them. */
export function acceptForms(server: FastifyInstance): void {
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('multipart/form-data', (_, __, done) => {
    done(null)
  })
  server.addContentTypeParser('*', (_, __, done) => {
    done(createFormTypeError())
  })
}

function createFormTypeError(): VersoError {
  return new VersoError('media-type', 'Send the file as multipart/form-data, in a part named "file"')
}

export async function readForm<F>(
  message: IncomingMessage,
  requestLimitBytes: number,
  sink: UploadSink<F>,
): Promise<UploadForm<F>> {
  if (!/^multipart\/form-data\b/i.test(message.headers['content-type'] ?? '')) throw createFormTypeError()
  refuseContentEncoding(message.headers['content-encoding'])
  const parser = createFormParser(message)
  const reader = new FormReader(requestLimitBytes, sink)
  const { count, delimiters } = createDelimiterCounter(message)
  // The parser silently skips a part with a malformed head. Without its part `request`, an update would become a create.
  const findUnreadHead = () =>
    delimiters() === reader.partCount + 1
      ? undefined
      : createMalformedFormError('the header of a part is malformed')
  try {
    // A message that is already closed does not emit `close` again.
    if (message.destroyed && !message.readableEnded) throw createTruncatedFormError()
    await new Promise<void>((resolve, reject) => {
      parser.on('file', (name, stream, fileName, encoding) => {
        reader.readPart(name, stream, fileName, encoding).catch(reject)
      })
      parser.on('partsLimit', () => {
        reject(createMalformedFormError(`more than ${MAX_FORM_PARTS} parts`))
      })
      parser.on('error', (error: unknown) => {
        reject(createMalformedFormError('the closing boundary is missing, or a part is malformed', error))
      })
      parser.on('finish', resolve)
      // Also emitted when the whole message has arrived but was not read to the end.
      message.once('close', () => {
        if (!message.readableEnded) reject(createTruncatedFormError())
      })
      message.on('data', count)
      message.pipe(parser, { end: false })
      message.once('end', () => {
        // Called when every byte was parsed. For an unterminated head the parser emits neither `error` nor `finish`.
        parser.end(() => {
          const error = findUnreadHead()
          if (error) reject(error)
        })
      })
    })
    const headError = findUnreadHead()
    if (headError) throw headError
    return await reader.finish()
  } catch (error) {
    message.off('data', count)
    message.unpipe(parser)
    // Drains the rest of the message, so that the connection can be reused.
    message.resume()
    // Stops the parts that are still being read and discards the file.
    await reader.abort()
    throw error
  }
}

/** Counts the delimiters in the raw bytes, independently of the parser. */
function createDelimiterCounter({ headers }: IncomingMessage) {
  const [, quoted, plain = ''] =
    /\bboundary=(?:"([^"]*)"|([^\s;]*))/i.exec(headers['content-type'] ?? '') ?? []
  const delimiter = Buffer.from(`\r\n--${quoted ?? plain}`, 'latin1')
  // The first delimiter may have no line break before it.
  let tail: Buffer = Buffer.from('\r\n')
  let found = 0
  return {
    delimiters: () => found,
    count: (chunk: Buffer) => {
      const bytes = Buffer.concat([tail, chunk])
      for (let at = bytes.indexOf(delimiter); at >= 0; at = bytes.indexOf(delimiter, at + 1)) found++
      tail = bytes.subarray(Math.max(0, bytes.length - delimiter.length + 1))
    },
  }
}

function createFormParser(message: IncomingMessage): InstanceType<typeof Busboy> {
  const contentType = message.headers['content-type'] ?? ''
  try {
    return new Busboy({
      headers: { ...message.headers, 'content-type': contentType },
      // Treats every part as a stream of bytes, because some clients send the JSON part as a file.
      isPartAFile: () => true,
      preservePath: true,
      limits: { parts: MAX_FORM_PARTS, headerPairs: MAX_PART_HEADERS, headerSize: MAX_PART_HEADER_BYTES },
    })
  } catch (cause) {
    throw createMalformedFormError('Content-Type has no boundary', cause)
  }
}

class FormReader<F> {
  partCount = 0
  readonly #streams = new Map<FormPartName, BusboyFileStream>()
  readonly #texts = new Map<FormPartName, Promise<Buffer>>()
  #file: Promise<F> | undefined
  #fileName: string | undefined

  constructor(
    private readonly requestLimitBytes: number,
    private readonly sink: UploadSink<F>,
  ) {}

  /** Resolves when the part has arrived. */
  async readPart(
    name: string | undefined,
    stream: BusboyFileStream,
    fileName: string | undefined,
    encoding: string,
  ): Promise<void> {
    this.partCount++
    // The reader of the stream reports its errors. An error after the reader has stopped must not crash the process.
    stream.on('error', () => undefined)
    const part = FORM_PARTS.find((known) => known === name)
    if (!part || this.#streams.has(part)) {
      const label = name === undefined ? 'without a name' : `"${shortenForMessage(name)}"`
      throw createMalformedFormError(
        part
          ? `part "${part}" occurs twice`
          : `unknown part ${label}; known parts are ${FORM_PARTS.join(', ')}`,
      )
    }
    if (!PLAIN_ENCODINGS.includes(encoding.toLowerCase()))
      throw createMalformedFormError(
        `part "${part}" is encoded as ${shortenForMessage(encoding)}: send it without an encoding`,
      )
    this.#streams.set(part, stream)
    if (part === 'file') {
      this.#fileName = fileName
      this.#file = this.sink.receive(stream)
      await this.#file
    } else {
      const limit = part === 'request' ? this.requestLimitBytes : MAX_FIELD_PART_BYTES
      const text = readPartBytes(part, stream, limit)
      this.#texts.set(part, text)
      await text
    }
  }

  async finish(): Promise<UploadForm<F>> {
    const field = await this.#texts.get('field')
    const request = await this.#texts.get('request')
    const body = request === undefined ? { data: {} } : parseJsonBody(request)
    const content = {
      data: readDataObject(body),
      fieldSelection: readFieldSelection(body),
      field: field?.toString().trim(),
    }
    if (!this.#file) throw createMalformedFormError('part "file" is missing')
    return { ...content, file: await this.#file, fileName: this.#fileName }
  }

  async abort(): Promise<void> {
    for (const stream of this.#streams.values()) stream.destroy()
    await Promise.allSettled(this.#texts.values())
    const [file] = await Promise.allSettled(this.#file ? [this.#file] : [])
    if (file?.status === 'fulfilled') await this.sink.discard(file.value)
  }
}

async function readPartBytes(
  part: FormPartName,
  stream: AsyncIterable<Uint8Array>,
  limitBytes: number,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > limitBytes)
      throw new VersoError(
        'too-large',
        `The form part "${part}" exceeds ${limitBytes} bytes; nothing was changed`,
      )
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function createTruncatedFormError(): VersoError {
  return createMalformedFormError('the request ended before the form was complete')
}

function createMalformedFormError(reason: string, cause?: unknown): VersoError {
  return new VersoError('bad-request', `Malformed form: ${reason}; nothing was changed`, { cause })
}
