// What one would write by hand for one table: no session, no validation, no Log. It speaks the same paths as the service.
// node bench/reference-server.mjs <file> <full|normal> <rows>
import { DatabaseSync } from '@photostructure/sqlite'
import { fastify } from 'fastify'
import { sampleContact } from '../dist/cli/sample.js'

const [file, synchronous, rows] = process.argv.slice(2)
const PATH = '/ws/rest/com.axelor.contact.db.Contact'
const FIELDS = ['fullName', 'firstName', 'lastName', 'email', 'phone', 'dateOfBirth', 'notes', 'createdOn']

const db = new DatabaseSync(file)
db.exec(`pragma journal_mode = wal; pragma synchronous = ${synchronous}`)
db.exec(`create table contact (id integer primary key autoincrement, version integer not null,
  ${FIELDS.map((field) => `${field} text`).join(', ')}, updatedOn text) strict`)

const begin = db.prepare('begin immediate')
const commit = db.prepare('commit')
const rollback = db.prepare('rollback')
const insert = db.prepare(
  `insert into contact (version, ${FIELDS.join(', ')}) values (0, ${FIELDS.map(() => '?').join(', ')})`,
)
const read = db.prepare('select * from contact where id = ?')
const count = db.prepare('select count(*) as total from contact')
const page = db.prepare('select id, version, fullName, email from contact order by id limit ? offset ?')
const update = db.prepare(
  `update contact set firstName = ?, lastName = ?, fullName = ?, email = ?, phone = ?, dateOfBirth = ?, notes = ?,
   updatedOn = ?, version = version + 1 where id = ? and version = ?`,
)

function transaction(work) {
  begin.run()
  try {
    const result = work()
    commit.run()
    return result
  } catch (error) {
    rollback.run()
    throw error
  }
}

function store(contact) {
  const record = { ...contact, fullName: nameOf(contact), createdOn: new Date().toISOString() }
  return insert.run(...FIELDS.map((field) => record[field] ?? null)).lastInsertRowid
}

function nameOf({ firstName, lastName }) {
  return [firstName, lastName].filter(Boolean).join(' ')
}

transaction(() => {
  for (let index = 0; index < Number(rows); index++) store(sampleContact(index))
})

const server = fastify()

server.get(PATH, async (request) => {
  const [offset, limit] = [Number(request.query.offset), Number(request.query.limit)]
  return { status: 0, offset, total: count.get().total, data: page.all(limit, offset) }
})

server.get(`${PATH}/:id`, async (request, reply) => {
  const record = read.get(request.params.id)
  return record ? { status: 0, data: [record] } : reply.code(404).send({ status: -1 })
})

server.put(PATH, async (request) => {
  const record = transaction(() => read.get(store(request.body.data)))
  return { status: 0, data: [record] }
})

server.post(`${PATH}/:id`, async (request, reply) => {
  const { data } = request.body
  const record = transaction(() => {
    const next = { ...read.get(request.params.id), ...data }
    const { firstName, lastName, email, phone, dateOfBirth, notes, id } = next
    const values = [firstName, lastName, nameOf(next), email, phone, dateOfBirth, notes]
    const { changes } = update.run(...values, new Date().toISOString(), id, data.version)
    return changes === 1 ? read.get(id) : undefined
  })
  return record ? { status: 0, data: [record] } : reply.code(409).send({ status: -1 })
})

process.once('SIGTERM', async () => {
  await server.close()
  db.close()
})

console.log(`listening on ${await server.listen({ host: '127.0.0.1', port: 0 })}`)
