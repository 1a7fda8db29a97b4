// A store where the last write wins, without a version check. It shows that prove detects lost updates.
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Adapter, HttpResponse, FailureResult, RecordResult, ObservedState } from './adapter.js'

interface StoreResponse {
  readonly status: number
  readonly body?: unknown
}

/** Keeps records in memory: PUT /, GET, POST and DELETE /<id>, and GET / for the total. */
function createLastWriteWinsServer(): Server {
  const records = new Map<string, ObservedState>()
  let lastId = 0
  const answer = async (request: IncomingMessage): Promise<StoreResponse> => {
    const id = request.url?.slice(1) ?? ''
    if (request.method === 'PUT') {
      const { tokens } = (await json(request)) as ObservedState
      const record = { version: 0, tokens }
      records.set(String(++lastId), record)
      return { status: 200, body: { id: String(lastId), ...record } }
    }
    if (id === '') return { status: 200, body: { total: records.size } }
    const sent = request.method === 'POST' ? ((await json(request)) as ObservedState) : undefined
    const record = records.get(id)
    if (!record) return { status: 404 }
    if (request.method === 'DELETE') records.delete(id)
    if (!sent) return { status: 200, body: { id, ...record } }
    // A correct store would compare the version that was sent.
    const changed = { version: record.version + 1, tokens: sent.tokens }
    records.set(id, changed)
    return { status: 200, body: { id, ...changed } }
  }
  return createServer((request, response) => {
    void answer(request).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}))
    })
  })
}

export function createLastWriteWinsAdapter(): Adapter {
  const server = createLastWriteWinsServer()
  return {
    name: 'last-write-wins',
    start: async () => {
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return [`http://127.0.0.1:${(server.address() as AddressInfo).port}`]
    },
    stop: async () => {
      server.close()
      server.closeAllConnections()
    },
    create: async (send, tokens) => toRecordResult(await send('PUT', '/', { body: { tokens } })),
    read: async (send, id) => toRecordResult(await send('GET', `/${id}`)),
    update: async (send, id, version, tokens) =>
      toRecordResult(await send('POST', `/${id}`, { body: { version, tokens } })),
    remove: async (send, id) => {
      const answer = await send('DELETE', `/${id}`)
      return answer.status === 200 ? { outcome: 'ok' } : toStoreFailure(answer)
    },
    total: async (send) => {
      const answer = await send('GET', '/')
      return { outcome: 'ok', total: (answer.body as { total: number }).total }
    },
  }
}

function toRecordResult(answer: HttpResponse): RecordResult {
  if (answer.status !== 200) return toStoreFailure(answer)
  return { outcome: 'ok', ...(answer.body as ObservedState & { id: string }) }
}

function toStoreFailure({ status }: HttpResponse): FailureResult {
  if (status === 404) return { outcome: 'missing' }
  return { outcome: 'unexpected', message: `the response was ${status}` }
}
