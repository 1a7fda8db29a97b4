import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { formatCsvLine, quoteCell, formatReadableCell } from '../../formats/csv.js'
import { isObject } from '../../model/values/value.js'
import { exportSearch, type ExportTable } from '../../service/transfer/export.js'
import type { WireRecord } from '../../wire.js'
import { requirePrincipal, readRouteModel } from '../route/guard.js'
import { MIN_COMPRESSED_BYTES } from '../response/compressor.js'
import { selectCoding, sendCodedStream, sendStream, setHeader, type SentReply } from '../response/send.js'
import { buildRecordRouteDefaults, documented, type Resource, type RouteContext } from '../route/resource.js'
import { EXPORT_DOCS } from './read-docs.js'
import { createContext } from '../../service/context/context.js'

/** Exports all results of a search as CSV. */
export function createExportResource(context: RouteContext): Resource {
  return {
    ...buildRecordRouteDefaults(context.guards),
    path: '/ws/rest/:model/export',
    handlers: { POST: documented(EXPORT_DOCS, async (request, reply) => sendCsv(context, request, reply)) },
  }
}

async function sendCsv(
  { app, protocol }: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<SentReply> {
  const model = readRouteModel(app, request)
  const principal = requirePrincipal(request)
  const { body } = request
  const { request: search } = protocol.convertSearch(principal, model, body ?? undefined)
  // The protocol may add a limit that the client did not send.
  const { offset, limit } = isObject(body) ? body : {}
  const unlimited = isObject(search) ? { ...search, offset, limit } : search
  const table = exportSearch(createContext(app, principal), model, unlimited)
  // The response starts after the first page, so an error before it still gets an ordinary error response.
  const first = await table.pages.next()
  const page = first.done === true ? [] : first.value
  const name = model.name.slice(model.name.lastIndexOf('.') + 1).toLowerCase()
  setHeader(reply, 'content-disposition', `attachment; filename="${name}.csv"`)
  return sendText(reply, 'text/csv; charset=utf-8', generateCsvLines(table, page))
}

/** An error in this generator closes the connection, so that the client does not take a truncated table for a complete one. */
async function* generateCsvLines(
  { columns, pages }: ExportTable,
  first: readonly WireRecord[],
): AsyncGenerator<string> {
  const formatLine = (record: WireRecord) =>
    formatCsvLine(columns.map(({ key, field }) => formatReadableCell(field, record[key])))
  try {
    yield formatCsvLine(columns.map(({ key }) => quoteCell(key))) + first.map(formatLine).join('')
    for await (const page of pages) if (page.length > 0) yield page.map(formatLine).join('')
  } finally {
    // Closes the search also if the client disconnects before the loop requests a second page.
    await pages.return(undefined)
  }
}

/** Sends text of unknown length. It is compressed if the client accepts that and the text has the size for it. */
async function sendText(
  reply: FastifyReply,
  type: string,
  chunks: AsyncGenerator<string>,
): Promise<SentReply> {
  const coding = selectCoding(reply, type, MIN_COMPRESSED_BYTES)
  if (coding === undefined) return sendStream(reply, type, Readable.from(chunks))
  const start: string[] = []
  let bytes = 0
  while (bytes < MIN_COMPRESSED_BYTES) {
    const next = await chunks.next()
    if (next.done === true) break
    start.push(next.value)
    bytes += Buffer.byteLength(next.value)
  }
  const all = Readable.from(prepend(start, chunks))
  return selectCoding(reply, type, bytes) === undefined
    ? sendStream(reply, type, all)
    : sendCodedStream(reply, type, all, coding)
}

async function* prepend(start: readonly string[], rest: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    yield* start
    yield* rest
  } finally {
    // Ends the rest also if the client disconnects before it has begun.
    await rest.return(undefined)
  }
}
