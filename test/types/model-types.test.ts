// The text that `verso types` writes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import ts from 'typescript'
import { afterAll, describe, expect, test } from 'vitest'
import { loadCatalog } from '../../src/cli/models/models.js'
import { describeModel, type ModelDescription } from '../../src/formats/model-description.js'
import { formatModel } from '../../src/formats/model-file.js'
import { formatModelTypes } from '../../src/formats/model-types.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'

const folder = mkdtempSync(path.join(tmpdir(), 'verso-types-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

const describeAll = (catalog: Catalog) =>
  catalog.storedModels.map((model) => describeModel(catalog, model, null))

/** The part of the text that begins with this line and ends with its closing brace. */
function find(text: string, line: string): string {
  const begin = text.indexOf(line)
  return begin < 0 ? '' : text.slice(begin, text.indexOf('\n}\n', begin) + 3)
}

/** Errors of the syntax. */
function parse(text: string): readonly string[] {
  const { diagnostics = [] } = ts.transpileModule(text, {
    reportDiagnostics: true,
    compilerOptions: { target: ts.ScriptTarget.ES2022, isolatedModules: true },
  })
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

const Task = defineModel({
  name: 'todo.Task',
  title: 'A task',
  fields: {
    subject: {
      type: 'string',
      required: true,
      title: 'What is to be done',
      help: 'One line.\nNo more */ than that.',
    },
    state: {
      type: 'enum',
      selection: ['open', { value: "won't do", title: 'Never' }],
      required: true,
      default: 'open',
    },
    level: { type: 'integer', selection: [1, 2] },
    hours: { type: 'decimal' },
    isOpen: { type: 'boolean', computed: ({ state }) => state === 'open' },
    pin: { type: 'string', secret: true, required: true },
    code: { type: 'string', secret: true, required: true, default: 'none' },
    photo: { type: 'binary' },
    extra: { type: 'json' },
    parent: { type: 'many-to-one', target: 'todo.Task' },
    parts: { type: 'one-to-many', target: 'todo.Task', mappedBy: 'parent' },
    tags: { type: 'many-to-many', target: 'todo.Task' },
  },
  nameField: 'subject',
  archived: true,
})

test('a model has interfaces to read, to refer to, to create and to update it', () => {
  const catalog = Catalog.from([{ file: 'task.ts', definition: Task }])
  const text = formatModelTypes(describeAll(catalog))
  expect(find(text, '/** A task */\nexport interface TodoTask {')).toBe(`/** A task */
export interface TodoTask {
  readonly id: number
  readonly version: number
  /**
   * What is to be done
   * One line.
   * No more *\\/ than that.
   */
  readonly subject: string
  readonly state: 'open' | 'won\\'t do'
  readonly level: 1 | 2 | null
  readonly hours: string | null
  readonly isOpen: boolean | null
  readonly extra: Json
  readonly parent: TodoTaskReference | null
  readonly tags: readonly TodoTaskReference[]
  readonly archived: boolean | null
  readonly createdOn: string
  readonly createdBy: VersoAuth_UserReference | null
  readonly updatedOn: string | null
  readonly updatedBy: VersoAuth_UserReference | null
}
`)
  expect(find(text, 'export interface TodoTaskReference {').replace(/ *\/\*\*.*?\*\/\n/s, ''))
    .toBe(`export interface TodoTaskReference {
  readonly id: number
  readonly $version: number
  readonly subject: string
}
`)
  expect(find(text, 'export interface TodoTaskCreate {').replace(/ *\/\*\*.*?\*\/\n/s, ''))
    .toBe(`export interface TodoTaskCreate {
  readonly subject: string
  readonly state?: 'open' | 'won\\'t do'
  readonly level?: 1 | 2 | null
  readonly hours?: string | number | null
  readonly pin: string
  readonly code?: string
  readonly extra?: Json
  readonly parent?: RelatedRecordInput | null
  readonly tags?: readonly RelatedRecordInput[]
  readonly archived?: boolean | null
}
`)
  expect(text).toContain('export interface TodoTaskUpdate extends Partial<TodoTaskCreate> {}\n')
  expect(text).toContain(`  'todo.Task': {
    read: TodoTask
    create: TodoTaskCreate
    update: TodoTaskUpdate
    reference: TodoTaskReference
    list: 'subject' | 'state' | 'level' | 'hours' | 'isOpen' | 'parent' | 'archived'
    one: { parent: 'todo.Task'; createdBy: 'verso.auth.User'; updatedBy: 'verso.auth.User' }
    many: { parts: 'todo.Task'; tags: 'todo.Task' }
    files: 'photo'
    json: 'extra'
  }
`)
})

test('the first line says how to write the file again', () => {
  const [line] = formatModelTypes([]).split('\n')
  expect(line).toMatch(/^\/\/ .*verso types --models .* --out .*verso types --url .* writes it again/)
})

test('the order of the models does not matter', () => {
  const descriptions = describeAll(Catalog.from([{ file: 'task.ts', definition: Task }]))
  expect(formatModelTypes(descriptions.toReversed())).toBe(formatModelTypes(descriptions))
})

test('models in TypeScript, JSON and XML have the same types', async () => {
  const xml = `<?xml version="1.0"?>
<domain-models xmlns="urn:domain"><module name="m" package="shop"/>
<entity name="Order" jsonAttrs="false"><string name="name" required="true" title="Number"/><decimal name="total"/>
<integer name="pieces" required="true" default="1"/><many-to-one name="parent" ref="shop.Order"/></entity></domain-models>`
  writeFileSync(path.join(folder, 'Order.xml'), xml)
  const domain = await loadCatalog(path.join(folder, 'Order.xml'))
  const definition = {
    name: 'shop.Order',
    fields: {
      name: { type: 'string', required: true, title: 'Number' },
      total: { type: 'decimal', default: '0' },
      pieces: { type: 'integer', required: true, default: 1 },
      parent: { type: 'many-to-one', target: 'shop.Order' },
    },
    archived: true,
  } as const
  writeFileSync(path.join(folder, 'order.json'), formatModel(definition, 'json'))
  writeFileSync(path.join(folder, 'order.ts'), formatModel(definition, 'ts'))
  const json = await loadCatalog(path.join(folder, 'order.json'))
  const script = await loadCatalog(path.join(folder, 'order.ts'))
  const [fromXml, fromJson, fromScript] = [domain, json, script].map((each) =>
    formatModelTypes(describeAll(each)),
  )
  expect(fromJson).toBe(fromScript)
  expect(fromXml).toBe(fromScript)
  expect(fromXml).toContain('  /** Number */\n  readonly name: string\n')
})

describe('descriptions of any service become valid TypeScript', () => {
  const describeOdd = (model: string, fields: readonly object[], more: object = {}) =>
    ({
      model,
      title: 'x',
      fields,
      listFields: [],
      jsonFields: {},
      perms: null,
      ...more,
    }) as unknown as ModelDescription

  test('names and texts that are no identifiers, reserved words and line ends', () => {
    const fields = [
      { name: 'class', type: 'STRING', title: 'Class\u2028of it' },
      { name: 'two words', type: 'STRING', title: '/* */ // `${x}`' },
      { name: "it's", type: 'STRING', title: 'a\r\nb' },
      { name: '1st', type: 'INTEGER', selectionList: [{ value: '-1' }, { value: '2' }] },
      { name: '__proto__', type: 'ENUM', selectionList: [{ value: "'\\\n" }, { value: '"' }] },
      { name: 'to', type: 'MANY_TO_ONE', target: "we're/not.a-name" },
    ]
    const text = formatModelTypes([describeOdd("we're/not.a-name", fields, { title: '*/ alert(1) /*' })])
    expect(parse(text), text).toEqual([])
    expect(text).toContain(`readonly 'it\\'s': string | null`)
    expect(text).toContain(`readonly '1st': -1 | 2 | null`)
    expect(text).not.toMatch(/^\s*alert/m)
  })

  test('models whose names would become the same identifier', () => {
    const names = ['a.BC', 'aB.C', 'a.b.C', 'a.B_C', 'a.Task', 'a.TaskCreate', 'a.TaskReference', 'a.Update']
    const text = formatModelTypes(names.map((name) => describeOdd(name, [{ name: 'x', type: 'STRING' }])))
    const declared = [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name)
    expect(new Set(declared).size).toBe(declared.length)
    expect(parse(text)).toEqual([])
  })

  test('a model that the user may only read has no types to write', () => {
    const perms = { read: true, write: false, create: false, remove: false, export: false }
    const text = formatModelTypes([describeOdd('a.B', [{ name: 'x', type: 'STRING' }], { perms })])
    expect(text).toContain('    create: never\n    update: never\n')
    expect(text).not.toMatch(/interface ABCreate|interface ABUpdate/)
  })

  test('a model that the user may change, but not create, has the fields in the type of an update', () => {
    const perms = { read: true, write: true, create: false }
    const text = formatModelTypes([
      describeOdd('a.B', [{ name: 'x', type: 'STRING', required: true }], { perms }),
    ])
    expect(find(text, 'export interface ABUpdate {')).toBe(
      'export interface ABUpdate {\n  readonly x?: string\n}\n',
    )
  })

  test('fields that the user may only write, or read in some records only', () => {
    const fields = [
      { name: 'seen', type: 'STRING', masked: true, required: true, nameColumn: true },
      { name: 'sent', type: 'STRING', writeOnly: true },
      { name: 'shown', type: 'STRING', readonly: true },
    ]
    const text = formatModelTypes([describeOdd('a.B', fields)])
    expect(find(text, 'export interface AB {')).toBe(
      'export interface AB {\n  readonly seen?: string\n  readonly shown: string | null\n}\n',
    )
    expect(find(text, 'export interface ABReference {')).toContain('readonly seen?: string\n')
    expect(find(text, 'export interface ABCreate {')).toBe(
      'export interface ABCreate {\n  readonly seen: string\n  readonly sent?: string | null\n}\n',
    )
  })
})
