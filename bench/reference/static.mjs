// The fastest response of node:http: constant bodies, as long as those of a record and of a page.
// Usage: node bench/reference/static.mjs <rows>
import { createServer } from 'node:http'
import { PAGE } from '../apis.mjs'
import { buildFullContact } from '../contacts.mjs'

const rows = Number(process.argv[2])

const marks = { createdOn: '2026-01-31T13:45:00.000Z', createdBy: null, updatedOn: null, updatedBy: null }
const one = Buffer.from(
  JSON.stringify({ status: 0, data: [{ id: 1, version: 0, ...buildFullContact(0), ...marks }] }),
)
const page = Buffer.from(
  JSON.stringify({
    ...{ status: 0, offset: 0, total: rows },
    data: Array.from({ length: PAGE }, (_, index) => ({
      id: index + 1,
      version: 0,
      ...buildFullContact(index),
    })),
  }),
)

function sendBody(response, body) {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}

const server = createServer((request, response) => {
  if (request.method === 'GET') return sendBody(response, request.url.includes('?') ? page : one)
  request.on('data', () => undefined)
  request.on('end', () => sendBody(response, one))
})

process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
