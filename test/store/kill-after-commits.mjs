// Commits rows and is killed: kill-after-commits.mjs <file> <rows> [clean|hold]
import { openSqlite } from '../../dist/store/sqlite/sqlite.js'

const [file, rows, end = 'kill'] = process.argv.slice(2)
const db = await openSqlite(file)
if (Number(rows) > 0)
  await db.transaction((tx) => tx.run('create table if not exists item (id integer primary key, text text)'))
const insertRow = () =>
  db.transaction((tx) => tx.insert('insert into item (text) values (?)', ['x'.repeat(1_000)]))
for (let row = 0; row < Number(rows); row++) await insertRow()
if (end === 'clean') await db.close()
else if (end === 'kill') process.kill(process.pid, 'SIGKILL')
else {
  process.stdout.write('open\n')
  // Each line on standard input commits one more row.
  process.stdin.on('data', () => void insertRow().then(() => process.stdout.write('committed\n')))
}
