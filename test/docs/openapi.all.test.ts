// The commands of the page about OpenAPI work when a reader pastes them.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { cleanUpAfterwards } from '../cli/program.js'
import { followPage } from './reader.js'

cleanUpAfterwards()

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, unknown>>
}

test('the commands of docs/reference/openapi.md get the documents', async () => {
  const { outputs, folder } = await followPage('docs/reference/openapi.md', { demo: [] })
  const read = (name: string) => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as Document
  const [all, part] = [read('openapi.json'), read('contact.json')]
  expect([all.openapi, part.openapi]).toEqual(['3.1.0', '3.1.0'])
  expect(Object.keys(all.paths)).toContain('/ws/batch')
  for (const name of Object.keys(part.paths)) expect(name).toContain('/ws/rest/com.axelor.contact.db.Contact')
  const schema = JSON.parse(outputs.at(-1) ?? '') as { $defs: object; properties: object }
  expect(Object.keys(schema.properties)).toContain('fullName')
  expect(Object.keys(schema.$defs)).toEqual(expect.arrayContaining(['list', 'create', 'update']))
})
