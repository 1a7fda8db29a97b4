// The table of the hand-written server in SQLite: WAL, one transaction for each write.
import { DatabaseSync } from '@photostructure/sqlite'
import { buildContact, FIELDS, formatFullName } from '../contacts.mjs'

export async function openTable(file, synchronous, rows) {
  const db = new DatabaseSync(file)
  db.exec(`pragma journal_mode = wal; pragma synchronous = ${synchronous}`)
  db.exec(`create table contact (id integer primary key autoincrement, version integer not null,
    ${FIELDS.map((field) => `${field} text`).join(', ')}, createdOn text, updatedOn text) strict`)
  const columns = [...FIELDS, 'createdOn']
  const insert = db.prepare(
    `insert into contact (version, ${columns.join(', ')}) values (0, ${columns.map(() => '?').join(', ')})`,
  )
  const read = db.prepare('select * from contact where id = ?')
  const count = db.prepare('select count(*) as total from contact')
  const page = db.prepare(
    `select id, version, ${FIELDS.join(', ')} from contact order by id limit ? offset ?`,
  )
  const update = db.prepare(
    `update contact set ${FIELDS.map((field) => `${field} = ?`).join(', ')}, updatedOn = ?, version = version + 1
     where id = ? and version = ?`,
  )
  const transaction = createTransactions(db)
  const store = (data) => {
    const record = { ...data, fullName: formatFullName(data), createdOn: new Date().toISOString() }
    return insert.run(...columns.map((column) => record[column] ?? null)).lastInsertRowid
  }
  transaction(() => {
    for (let index = 0; index < Number(rows); index++) store(buildContact(index))
  })
  return {
    read: (id) => read.get(id),
    page: (offset, limit) => ({ total: count.get().total, data: page.all(limit, offset) }),
    create: (data) => transaction(() => read.get(store(data))),
    update: (id, data) =>
      transaction(() => {
        const next = { ...read.get(id), ...data }
        const values = FIELDS.map((field) =>
          field === 'fullName' ? formatFullName(next) : (next[field] ?? null),
        )
        const { changes } = update.run(...values, new Date().toISOString(), id, data.version)
        return changes === 1 ? read.get(id) : undefined
      }),
    close: () => db.close(),
  }
}

function createTransactions(db) {
  const [begin, commit, rollback] = ['begin immediate', 'commit', 'rollback'].map((sql) => db.prepare(sql))
  return (work) => {
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
}
