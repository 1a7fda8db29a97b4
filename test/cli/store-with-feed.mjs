// A store in memory with a feed, for verso prove. FEED_MUTANT=forgets omits changes, FEED_MUTANT=repeats sends some twice.
import { createServer } from 'node:http'
import { once } from 'node:events'
import { json } from 'node:stream/consumers'

const MUTANT = process.env['FEED_MUTANT']
const EVERY = 20

const records = new Map()
const changes = []

function commit(id, record, tokens) {
  const before = record?.tokens
  const version = record ? record.version + 1 : 0
  const action = record ? (tokens ? 'update' : 'delete') : 'create'
  const change = { seq: changes.length + 1, id, version, action, before, after: tokens }
  changes.push(change)
  records.set(id, { id, version, tokens })
  return [200, records.get(id)]
}

function feed(since) {
  const page = changes.filter(({ seq }) => seq > since)
  const next = changes.length
  if (MUTANT === 'forgets') return { next, changes: page.filter(({ seq }) => seq % EVERY !== 0) }
  if (MUTANT === 'repeats')
    return { next, changes: page.flatMap((each) => (each.seq % EVERY ? [each] : [each, each])) }
  return { next, changes: page }
}

async function answer({ method, url, headers }, body) {
  const [, place, id] = url.split('/')
  if (place === 'changes') return [200, feed(Number(id))]
  if (method === 'POST') return commit(String(records.size + 1), undefined, body.tokens)
  const record = records.get(id)
  if (!record?.tokens) return [404, {}]
  if (method === 'GET') return [200, record]
  if (Number(headers['if-match']) !== record.version) return [412, {}]
  return commit(id, record, method === 'DELETE' ? undefined : body.tokens)
}

const server = createServer(async (request, response) => {
  const body = request.headers['content-length'] ? await json(request) : undefined
  const [status, said] = await answer(request, body)
  response.writeHead(status).end(JSON.stringify(said))
})

function outcome({ status, body }) {
  if (status === 200) return { outcome: 'ok', ...body }
  return status === 404 ? { outcome: 'missing' } : { outcome: 'conflict' }
}

export const adapter = {
  start: async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return [`http://127.0.0.1:${server.address().port}`]
  },
  stop: async () => {
    server.close()
    server.closeAllConnections()
  },
  create: async (send, tokens) => outcome(await send('POST', '/lists', { body: { tokens } })),
  read: async (send, id) => outcome(await send('GET', `/lists/${id}`)),
  update: async (send, id, version, tokens) =>
    outcome(
      await send('PUT', `/lists/${id}`, { headers: { 'if-match': String(version) }, body: { tokens } }),
    ),
  remove: async (send, id, version) =>
    outcome(await send('DELETE', `/lists/${id}`, { headers: { 'if-match': String(version) } })),
  feed: async (send, since = 0) => outcome(await send('GET', `/changes/${since}`)),
}
