// Writes in groups until the disk fails, and some time longer; prints the outcome of each group: fail-disk.mjs <file>. Run it with a limit
// on the file size: exceeding it is an I/O error, not a full disk.
import { openSqlite } from '../../dist/store/sqlite/sqlite.js'

const GROUPS = 40
const AT_ONCE = 32
const [file] = process.argv.slice(2)
let broken = 0
const db = await openSqlite(file, { onBroken: () => broken++ })
await db.transaction((tx) => tx.run('create table item (id integer primary key, text text)'))

const groups = []
for (let group = 0; group < GROUPS; group++) {
  const writes = Array.from({ length: AT_ONCE }, (_, index) =>
    db.transaction((tx) =>
      tx.insert('insert into item (text) values (?)', ['x'.repeat(index % 2 === 0 ? 10 : 8_000)]),
    ),
  )
  const outcomes = await Promise.allSettled(writes)
  groups.push(outcomes.map(({ value, reason }) => reason?.kind ?? value))
}
process.stdout.write(JSON.stringify({ groups, broken }))
