// Feathers as in its guide: Koa, REST, the Knex service.
// Usage: node bench/peers/feathers-server.mjs <folder> <file> <rows>
import { once } from 'node:events'
import { FIELDS, buildFullContact } from '../contacts.mjs'
import { createPeerRequire } from './installing.mjs'

const [place, file, rows] = process.argv.slice(2)
const require = createPeerRequire(place)
const { feathers } = require('@feathersjs/feathers')
const { bodyParser, errorHandler, koa, rest } = require('@feathersjs/koa')
const { KnexService } = require('@feathersjs/knex')
const { DatabaseSync } = require('@photostructure/sqlite')
const knex = require('knex')
const BetterSqlite = require('knex/lib/dialects/better-sqlite3')

const FILL_AT_ONCE = 100

/**
 * The driver that Knex expects, on top of one that needs no compiler. It caches prepared statements, which Knex does
 * not.
 */
class Driver {
  #db
  #statements = new Map()

  constructor(name) {
    this.#db = new DatabaseSync(name)
    this.#db.exec('pragma journal_mode = wal; pragma synchronous = normal')
  }

  prepare(sql) {
    let statement = this.#statements.get(sql)
    if (!statement) {
      const prepared = this.#db.prepare(sql)
      statement = {
        reader: prepared.columns().length > 0,
        all: (values) => prepared.all(...values),
        run: (values) => prepared.run(...values),
      }
      this.#statements.set(sql, statement)
    }
    return statement
  }

  close() {
    this.#db.close()
  }
}

class Client extends BetterSqlite {
  _driver() {
    return Driver
  }
}

const Model = knex({ client: Client, connection: { filename: file }, useNullAsDefault: true })
await Model.schema.createTable('contacts', (table) => {
  table.increments('id')
  for (const field of FIELDS) table.text(field)
})
await Model.transaction(async (transaction) => {
  for (let start = 0; start < Number(rows); start += FILL_AT_ONCE) {
    const length = Math.min(FILL_AT_ONCE, Number(rows) - start)
    await transaction('contacts').insert(
      Array.from({ length }, (_, index) => buildFullContact(start + index)),
    )
  }
})

const app = koa(feathers())
app.use(errorHandler())
app.use(bodyParser())
app.configure(rest())
app.use('contacts', new KnexService({ Model, name: 'contacts', paginate: { default: 40, max: 100 } }))
const server = await app.listen(0, '127.0.0.1')
if (!server.listening) await once(server, 'listening')
process.once('SIGTERM', () => process.exit())
console.log(`listening on http://127.0.0.1:${server.address().port}`)
