import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { formatCsvLine, quoteCell, formatReadableCell } from '../../formats/csv.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { exportSearch, type ExportTable } from '../../service/transfer/export.js'
import type { WireRecord } from '../../wire.js'
import { requirePrincipal, type Guards } from '../route/guard.js'
import type { Protocol } from '../compat/protocol.js'
import { readRouteModel } from '../route/record-request.js'
import { buildRecordRouteDefaults, type Resource } from '../route/resource.js'
import { createContext } from '../../service/context/context.js'

/** Exports all results of a search as CSV. */
export function createExportResource(app: App, guards: Guards, protocol: Protocol): Resource {
  return {
    ...buildRecordRouteDefaults(guards),
    path: '/ws/rest/:model/export',
    handlers: { POST: async (request, reply) => sendCsv(app, protocol, request, reply) },
  }
}

async function sendCsv(
  app: App,
  protocol: Protocol,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const model = readRouteModel(app, request)
  const { body } = request
  const { request: search } = protocol.convertSearch(requirePrincipal(request), model, body ?? undefined)
  // The protocol may add a limit that the client did not send.
  const { offset, limit } = isObject(body) ? body : {}
  const table = exportSearch(
    createContext(app, requirePrincipal(request)),
    model,
    isObject(search) ? { ...search, offset, limit } : search,
  )
  // The response starts after the first page, so an error before it still gets an ordinary error response.
  const first = await table.pages.next()
  const page = first.done === true ? [] : first.value
  const name = model.name.slice(model.name.lastIndexOf('.') + 1).toLowerCase()
  return reply
    .header('content-type', 'text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}.csv"`)
    .send(Readable.from(generateCsvLines(table, page)))
}

/** An error in this generator closes the connection, so that the client does not take a truncated table for a complete one. */
async function* generateCsvLines(
  { columns, pages }: ExportTable,
  first: readonly WireRecord[],
): AsyncGenerator<string> {
  const printLine = (record: WireRecord) =>
    formatCsvLine(columns.map(({ key, field }) => formatReadableCell(field, record[key])))
  try {
    yield formatCsvLine(columns.map(({ key }) => quoteCell(key))) + first.map(printLine).join('')
    for await (const page of pages) if (page.length > 0) yield page.map(printLine).join('')
  } finally {
    // Closes the search also if the client disconnects before the loop requests a second page.
    await pages.return(undefined)
  }
}
