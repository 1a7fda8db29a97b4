// Files of binary fields: forms to upload them, and downloads.
import type { CallScope } from './call-scope.js'
import { createRequestError } from './errors.js'

/** Content of an upload. A stream is read into memory first, so that a lost upload can be repeated. */
export type FileContent = Blob | Uint8Array | ArrayBuffer | ReadableStream<Uint8Array> | string

/** First and last byte, counted from 0. Without the last one, up to the end. */
export interface FileRange {
  readonly first: number
  readonly last?: number | undefined
}

/** A file that the service is sending. Read it, or cancel the stream: until then the connection is in use. */
export interface FileDownload {
  readonly name: string
  /** Content type, detected by the service from the first bytes. */
  readonly type: string
  /** Bytes of this response; undefined if the server does not say. */
  readonly size: number | undefined
  /** Bytes of the whole file, if this is a part of it. */
  readonly total: number | undefined
  stream(): ReadableStream<Uint8Array>
  bytes(): Promise<Uint8Array>
  blob(): Promise<Blob>
}

export interface UploadParts {
  readonly data: Readonly<Record<string, unknown>>
  readonly field: string | undefined
  readonly content: FileContent
  readonly name: string
}

export async function createForm({ data, field, content, name }: UploadParts): Promise<FormData> {
  const form = new FormData()
  form.set('request', JSON.stringify({ data }))
  if (field !== undefined) form.set('field', field)
  form.set('file', content instanceof Blob ? content : await readContent(content), name)
  return form
}

async function readContent(content: Exclude<FileContent, Blob>): Promise<Blob> {
  if (content instanceof ReadableStream) return new Response(content).blob()
  return new Blob([content])
}

export function formatRange(range: FileRange | undefined): Readonly<Record<string, string>> {
  if (range === undefined) return {}
  const { first, last = Infinity } = range
  // The service ignores a malformed range and would send the whole file.
  if (!Number.isSafeInteger(first) || first < 0 || !(last >= first))
    throw new TypeError('A range has a first byte from 0 on, and no last byte before it')
  return { range: `bytes=${first}-${last === Infinity ? '' : last}` }
}

/** A file has a name; the page of a proxy has none. */
export function isFileResponse({ status, headers }: Response): boolean {
  return status === 204 || headers.has('content-disposition')
}

/** Undefined if the field is empty. `scope` ends with the content: until then its signal stops the download. */
export function createDownload(response: Response, scope: CallScope): FileDownload | undefined {
  if (response.status === 204) return undefined
  const { headers } = response
  const length = headers.get('content-length')
  const total = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1]
  let content: ReadableStream<Uint8Array> | undefined
  const stream = () => (content ??= relayContent(response, scope))
  const read = () => new Response(stream())
  return {
    name: parseFileName(headers.get('content-disposition') ?? ''),
    type: headers.get('content-type') ?? 'application/octet-stream',
    size: length === null ? undefined : Number(length),
    total: total === undefined ? undefined : Number(total),
    stream,
    bytes: async () => new Uint8Array(await read().arrayBuffer()),
    blob: async () => new Blob([await read().arrayBuffer()], { type: headers.get('content-type') ?? '' }),
  }
}

/** Passes the content on, and translates its failure. */
function relayContent({ body, url }: Response, scope: CallScope): ReadableStream<Uint8Array> {
  const reader = (body as ReadableStream<Uint8Array> | null)?.getReader()
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const part = await reader?.read()
        if (part && !part.done) {
          controller.enqueue(part.value)
          return
        }
        scope.close()
        controller.close()
      } catch (cause) {
        scope.close()
        const message = `The download of ${url} was interrupted`
        const failure = createRequestError({ kind: 'network', message, cause })
        controller.error(scope.signal.aborted ? scope.signal.reason : scope.explain(failure))
      }
    },
    cancel: async (reason) => {
      scope.close()
      await reader?.cancel(reason)
    },
  })
}

/** Prefers the name in UTF-8 (RFC 6266). */
function parseFileName(disposition: string): string {
  const encoded = /filename\*=UTF-8''([^;]*)/i.exec(disposition)?.[1]
  const plain = /filename="([^"]*)"/i.exec(disposition)?.[1] ?? 'file'
  return encoded === undefined ? plain : decodeURIComponent(encoded)
}
