// Another process that writes slowly to the same SQLite file: hold-lock.mjs <file> <milliseconds>
import { DatabaseSync } from '@photostructure/sqlite'

const [file, ms] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

const connection = new DatabaseSync(file)
connection.exec('begin immediate')
process.stdout.write('locked\n')
setTimeout(() => {
  connection.exec('commit')
  connection.close()
  process.disconnect()
}, Number(ms))
