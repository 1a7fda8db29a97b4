// A form with a file, as `multipart/form-data`: the file goes where it is to be kept while it arrives, the other parts into memory.
import type { IncomingMessage } from 'node:http'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { FastifyInstance } from 'fastify'
import { VersoError } from '../../errors.js'
import type { FieldSelection } from '../../model/query/selection.js'
import { refuseContentEncoding, readDataObject, parseJsonBody } from '../request/bodies.js'
import { readFieldSelection } from '../route/record-request.js'

/** Nobody needs more than three: more are refused, not read. */
const MAX_FORM_PARTS = 8
const MAX_PART_HEADER_BYTES = 8_192
const MAX_PART_HEADERS = 16
const MAX_FIELD_PART_BYTES = 1_024

/** Nothing is to be decoded. */
const PLAIN_ENCODINGS = ['7bit', '8bit', 'binary']

const FORM_PARTS = ['request', 'field', 'file'] as const
type FormPartName = (typeof FORM_PARTS)[number]

export interface UploadForm<F> {
  /** What `request` says of the record. */
  readonly data: unknown
  /** What the answer is to show of it. */
  readonly wanted: FieldSelection | undefined
  readonly field: string | undefined
  readonly file: F
  /** What the file is called, as it was sent. */
  readonly fileName: string | undefined
}

/** What becomes of the file. */
export interface UploadSink<F> {
  receive(content: AsyncIterable<Uint8Array>): Promise<F>
  /** Of one that was received, if the rest of the form is at fault. */
  discard(file: F): Promise<void>
}

/** Forms only, and unread: `readForm` reads them. */
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
  return new VersoError('media-type', 'Send the file as multipart/form-data, in a part called "file"')
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
  // The parser passes over a part whose head it cannot read: an update must not become a new record because of that.
  const findUnreadHead = () =>
    delimiters() === reader.partCount + 1
      ? undefined
      : createMalformedFormError('the head of one of its parts cannot be read')
  try {
    // One that is closed already says so no more.
    if (message.destroyed && !message.readableEnded) throw createTruncatedFormError()
    await new Promise<void>((resolve, reject) => {
      parser.on('file', (name, stream, fileName, encoding) => {
        reader.readPart(name, stream, fileName, encoding).catch(reject)
      })
      parser.on('partsLimit', () => {
        reject(createMalformedFormError(`it has more than ${MAX_FORM_PARTS} parts`))
      })
      parser.on('error', (error: unknown) => {
        reject(createMalformedFormError('it does not end, or its parts cannot be told apart', error))
      })
      parser.on('finish', resolve)
      // Also where all of it has arrived, and some of it was not read yet.
      message.once('close', () => {
        if (!message.readableEnded) reject(createTruncatedFormError())
      })
      message.on('data', count)
      message.pipe(parser, { end: false })
      message.once('end', () => {
        // Called when every byte was parsed. Of a head that does not end the parser says nothing at all, not even that it is done.
        parser.end(() => {
          const fault = findUnreadHead()
          if (fault) reject(fault)
        })
      })
    })
    const headError = findUnreadHead()
    if (headError) throw headError
    return await reader.finish()
  } catch (error) {
    message.off('data', count)
    message.unpipe(parser)
    // The rest is taken off the wire, so that the connection can be used again.
    message.resume()
    // What is under way ends now, and takes back what it has done.
    await reader.abort()
    throw error
  }
}

/** How often a part begins or the form ends, whatever the parser makes of it. */
function createDelimiterCounter({ headers }: IncomingMessage) {
  const [, quoted, plain = ''] =
    /\bboundary=(?:"([^"]*)"|([^\s;]*))/i.exec(headers['content-type'] ?? '') ?? []
  const delimiter = Buffer.from(`\r\n--${quoted ?? plain}`, 'latin1')
  // The first may stand at the very beginning.
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
      // Every part as a stream of bytes: what is text is for us to say, and some clients send JSON as a file.
      isPartAFile: () => true,
      preservePath: true,
      limits: { parts: MAX_FORM_PARTS, headerPairs: MAX_PART_HEADERS, headerSize: MAX_PART_HEADER_BYTES },
    })
  } catch (cause) {
    throw createMalformedFormError('its content type names no boundary', cause)
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

  /** Answers when the part has arrived. */
  async readPart(
    name: string | undefined,
    stream: BusboyFileStream,
    fileName: string | undefined,
    encoding: string,
  ): Promise<void> {
    this.partCount++
    // An error of the stream comes out of whoever reads it; by then nobody may be reading any more.
    stream.on('error', () => undefined)
    const part = FORM_PARTS.find((known) => known === name)
    if (!part || this.#streams.has(part)) {
      const label = name === undefined ? 'a part without a name' : `"${name.slice(0, 100)}"`
      throw createMalformedFormError(
        part ? `it has "${part}" twice` : `it has ${label}: there are ${FORM_PARTS.join(', ')}`,
      )
    }
    if (!PLAIN_ENCODINGS.includes(encoding.toLowerCase()))
      throw createMalformedFormError(
        `"${part}" is encoded as ${encoding.slice(0, 100)}: send its bytes as they are`,
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
      wanted: readFieldSelection(body),
      field: field?.toString().trim(),
    }
    if (!this.#file) throw createMalformedFormError('it has no part called "file"')
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
    if (size > limitBytes) throw new VersoError('too-large', `"${part}" is longer than ${limitBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function createTruncatedFormError(): VersoError {
  return createMalformedFormError('it was cut off')
}

function createMalformedFormError(reason: string, cause?: unknown): VersoError {
  return new VersoError('bad-request', `The form cannot be read: ${reason}`, { cause })
}
