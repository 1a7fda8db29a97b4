// An import in a process with little memory: transfer-memory.mjs <database> <models.json> <file> [whole]. With `whole`, it runs the mutant
// that reads the file whole.
import { readFileSync } from 'node:fs'
import { createApp } from '../../dist/service/create-app.js'
import { readNdjson } from '../../dist/cli/data/ndjson-file.js'
import { importRecords } from '../../dist/service/transfer/import.js'

const [db, models, file, how] = process.argv.slice(2)
const sources = JSON.parse(readFileSync(models, 'utf8')).map((definition) => ({ file: models, definition }))
const app = await createApp({ models: sources, settings: { db } })

async function* atOnce() {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  yield lines.map((text, index) => ({ line: index + 1, input: JSON.parse(text) }))
}

const read = how === 'whole' ? atOnce : () => readNdjson(file, () => undefined)
const { created } = await importRecords(app, [{ name: file, model: app.catalog.get('crm.Contact'), read }])
process.stdout.write(`made ${created}\n`)
await app.close()
