// The types of a create agree with the service: it accepts the smallest value that compiles, and refuses one field less.
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readDescriptions } from '../../src/cli/schema/remote-models.js'
import { formatModelTypes } from '../../src/formats/model-types.js'
import type { Model } from '../../src/model/definition/model.js'
import { HttpClient } from '../http-client.js'
import type { Schema } from '../openapi/api-document.js'
import { SmallestRecords } from '../openapi/smallest-value.js'
import { rootOf } from '../permissions/office-fixture.js'
import { PASSWORD, startService, USERNAME, type Service } from '../targets.js'

const TYPES_FILE = '/models.ts'
const VALUES_FILE = '/values.ts'

let service: Service
let client: HttpClient
let types = ''

beforeAll(async () => {
  service = await startService('sqlite')
  client = await HttpClient.login(service.url, USERNAME, PASSWORD)
  const credentials = { key: undefined, user: USERNAME, password: PASSWORD, passwordStdin: false }
  types = formatModelTypes(await readDescriptions(service.url, credentials))
})

afterAll(async () => {
  await service.close()
})

/** Compiles the types with a file that uses them. */
function compile(values: string): ts.Program {
  const files = new Map([
    [TYPES_FILE, types],
    [VALUES_FILE, `import type { Models } from './models.js'\n${values}`],
  ])
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const readFile = host.getSourceFile.bind(host)
  host.fileExists = (file) => files.has(file) || ts.sys.fileExists(file)
  host.getSourceFile = (file, target) => {
    const text = files.get(file)
    return text === undefined ? readFile(file, target) : ts.createSourceFile(file, text, target)
  }
  return ts.createProgram([VALUES_FILE], options, host)
}

/** Returns the names of the fields that the type of a create requires. */
function listRequired(models: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const program = compile(
    models.map((model, index) => `export type T${index} = Models['${model}']['create']`).join('\n'),
  )
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(VALUES_FILE)
  const aliases = source?.statements.filter(ts.isTypeAliasDeclaration) ?? []
  return new Map(
    aliases.map((alias, index) => {
      const properties = checker.getTypeAtLocation(alias).getProperties()
      const required = properties.filter(({ flags }) => (flags & ts.SymbolFlags.Optional) === 0)
      return [models[index] ?? '', required.map(({ name }) => name)]
    }),
  )
}

/** Returns the errors of each line. */
function listErrors(lines: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const program = compile(lines.join('\n'))
  const source = program.getSourceFile(VALUES_FILE)
  if (!source) throw new Error('the compiler did not read the values')
  const errors = new Map<string, string[]>(lines.map((line) => [line, []]))
  for (const { start = 0, messageText } of program.getSemanticDiagnostics(source)) {
    const line = lines[source.getLineAndCharacterOfPosition(start).line - 1] ?? ''
    errors.get(line)?.push(ts.flattenDiagnosticMessageText(messageText, '\n'))
  }
  return errors
}

test('the service accepts the smallest value of every model that compiles, and both refuse one field less', async () => {
  const { storedModels } = service.app.catalog
  const root = rootOf(service)
  const findSchema = async ({ name }: Model) => {
    const response = await client.request('GET', `/ws/meta/schema/${name}`)
    return ((await response.json()) as { $defs: Record<string, Schema> }).$defs['create']
  }
  const smallest = new SmallestRecords(storedModels, findSchema, root)
  const required = listRequired(storedModels.map(({ name }) => name))
  const whole: string[] = []
  const incomplete: string[] = []
  for (const model of storedModels) {
    const value = await smallest.build(model)
    // Only the service creates records of this model.
    if (!value) continue
    const declare = (data: object) =>
      `export const v${whole.length}_${incomplete.length}: Models['${model.name}']['create'] = ${JSON.stringify(data)}`
    const names = required.get(model.name) ?? []
    expect(Object.keys(value)).toEqual(expect.arrayContaining([...names]))
    whole.push(declare(value))
    await root.create(model.name, value)
    for (const name of names) {
      const less = Object.fromEntries(Object.entries(value).filter(([key]) => key !== name))
      incomplete.push(declare(less))
      await expect(root.create(model.name, less)).rejects.toMatchObject({
        kind: 'invalid',
        details: { errors: { [name]: 'is required' } },
      })
    }
  }
  const errors = listErrors([...whole, ...incomplete])
  expect(whole.flatMap((line) => errors.get(line) ?? [])).toEqual([])
  for (const line of incomplete)
    expect([line, errors.get(line)]).toEqual([line, [expect.stringContaining(' is missing in type ')]])
  expect(whole.length).toBeGreaterThan(15)
  expect(incomplete.length).toBeGreaterThan(10)
})
