// A misnamed hook stops the start, with its file and a suggestion.
import { expect, test } from 'vitest'
import { ConfigError } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { defineHooks, extendModel } from '../../src/model/definition/extend-model.js'

const task = { name: 'todo.Task', fields: { title: { type: 'string' } } }

function errorsOf(hooks: object, extension?: object): readonly string[] {
  const sources = [
    { file: 'task.ts', definition: { ...task, hooks } },
    ...(extension
      ? [{ file: 'rules.ts', definition: extendModel({ name: 'todo.Task', hooks: extension }) }]
      : []),
  ]
  try {
    Catalog.from(sources)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.errors
  }
}

test('a misnamed hook is reported with a suggestion', () => {
  expect(errorsOf({ beforesave: () => undefined })).toEqual([
    'task.ts: todo.Task: hooks: unknown hook "beforesave" (did you mean "beforeSave"?)',
  ])
})

test('a misnamed hook of an extension is reported with the file of the extension, once', () => {
  expect(errorsOf({}, { beforeSav: () => undefined })).toEqual([
    'rules.ts: todo.Task: hooks: unknown hook "beforeSav" (did you mean "beforeSave"?)',
  ])
})

test('a hook that is no function is reported; a text gets the advice for JSON and XML', () => {
  expect(errorsOf({ validate: 5, afterCommit: { sendMail: true, '1st': () => undefined } })).toEqual([
    'task.ts: todo.Task: hooks: validate must be a function',
    'task.ts: todo.Task: hooks: afterCommit.sendMail must be a function',
    'task.ts: todo.Task: hooks: the name "1st" in afterCommit must be a letter, followed by letters, digits or _',
  ])
  expect(errorsOf({ beforeSave: 'code' })[0]).toContain('extendModel({ name, hooks }) in a TypeScript file')
})

test('two hooks after the commit need two names', () => {
  const twice = errorsOf({ afterCommit: () => undefined }, { afterCommit: () => undefined })
  expect(twice).toEqual([
    expect.stringContaining('two afterCommit hooks with the name "afterCommit"') as string,
  ])
  expect(errorsOf({ afterCommit: () => undefined }, { afterCommit: { mail: () => undefined } })).toEqual([])
})

test('hooks of something other than a model are reported', () => {
  const extension = extendModel({ name: 'todo.Task' })
  for (const wrong of [undefined, null, 'todo.Task', {}, extension])
    expect(() => defineHooks(wrong as never, {})).toThrow(
      expect.objectContaining({
        errors: [expect.stringContaining('defineHooks takes a model that defineModel returned') as string],
      }),
    )
})
