// A hand-written server for one table, with the paths of Verso: no session, no validation, no change log.
// Usage: node bench/reference/server.mjs sqlite <file> <full|normal> <rows>
//        node bench/reference/server.mjs postgres <url> <rows>
import { fastify } from 'fastify'
import { MODEL } from '../contacts.mjs'

const [engine, ...words] = process.argv.slice(2)
const { openTable } = await import(`./${engine}.mjs`)
const table = await openTable(...words)

const PATH = `/ws/rest/${MODEL}`
const server = fastify()

server.get(PATH, async ({ query }) => {
  const [offset, limit] = [Number(query.offset), Number(query.limit)]
  return { status: 0, offset, ...(await table.page(offset, limit)) }
})

server.get(`${PATH}/:id`, async ({ params }, reply) => {
  const record = await table.read(params.id)
  return record ? { status: 0, data: [record] } : reply.code(404).send({ status: -1 })
})

server.put(PATH, async ({ body }) => ({ status: 0, data: [await table.create(body.data)] }))

server.post(`${PATH}/:id`, async ({ params, body }, reply) => {
  const record = await table.update(params.id, body.data)
  return record ? { status: 0, data: [record] } : reply.code(409).send({ status: -1 })
})

process.once('SIGTERM', async () => {
  await server.close()
  await table.close()
})

console.log(`listening on ${await server.listen({ host: '127.0.0.1', port: 0 })}`)
