// The fields of forms: what is wrong with typed values, defaults of new records, and lines of owned lists.
import { describe, expect, test } from 'vitest'
import { findFieldProblem } from '../../admin/fields/field-problems.js'
import { isInvalidInput } from '../../admin/fields/field-props.js'
import { buildInitialValues, listFormFields } from '../../admin/fields/initial-values.js'
import {
  createLine,
  findLineKey,
  isUntouched,
  listLineFields,
  mergeRemoved,
} from '../../admin/fields/owned-lines.js'
import { readModel, type FieldInfo, type ModelInfo } from '../../admin/service/model-info.js'
import { english } from '../../admin/texts/english.js'
import { inZone } from './time-zone.js'

function describeModel(fields: readonly Readonly<Record<string, unknown>>[]): ModelInfo {
  return readModel({ model: 'kit.Line', fields, perms: null })
}

function describeField(description: Readonly<Record<string, unknown>>): FieldInfo {
  const [field] = describeModel([{ name: 'field', ...description }]).fields
  if (!field) throw new Error('There is no field')
  return field
}

describe('problems that are found without the service', () => {
  const texts = english.fields
  const find = (description: Readonly<Record<string, unknown>>, value: unknown) =>
    findFieldProblem(describeField(description), value, texts)

  test('a text is counted in characters, not in code units', () => {
    expect(find({ type: 'STRING', maxSize: 3 }, '😀😀😀')).toBeUndefined()
    expect(find({ type: 'STRING', maxSize: 3 }, 'abcde')).toBe('2 characters too many')
  })

  test('numbers that are still texts are reported', () => {
    expect(find({ type: 'LONG' }, '9007199254740993')).toBe(texts.noInteger)
    expect(find({ type: 'INTEGER' }, 5)).toBeUndefined()
    expect(find({ type: 'DECIMAL', scale: 2 }, 'abc')).toBe(texts.noNumber)
    expect(find({ type: 'DECIMAL', scale: 2 }, '1.505')).toBe('At most 2 digits after the decimal point.')
    expect(find({ type: 'DECIMAL', scale: 2 }, '1.50')).toBeUndefined()
  })

  test('an empty value is left to the service', () => {
    for (const type of ['STRING', 'DECIMAL', 'LONG', 'UUID', 'DATE'])
      expect(find({ type, required: true }, null)).toBeUndefined()
  })

  test('a value that is not complete has a problem, whatever its field', () => {
    expect(find({ type: 'DATE' }, { $invalid: '' })).toBe(texts.incompleteDate)
    expect(find({ type: 'TIME' }, { $invalid: '' })).toBe(texts.incompleteTime)
    expect(find({ type: 'STRING', json: true }, { $invalid: '{"a": ' })).toContain('This is not JSON')
  })

  test('JSON with further keys is a value, not what somebody typed', () => {
    expect(isInvalidInput({ $invalid: 'x' })).toBe(true)
    expect(isInvalidInput({ $invalid: 'x', a: 1 })).toBe(false)
    expect(isInvalidInput({ $invalid: 1 })).toBe(false)
    expect(isInvalidInput([])).toBe(false)
  })
})

describe('new records and lines', () => {
  const model = describeModel([
    { name: 'id', type: 'LONG', readonly: true },
    { name: 'owner', type: 'MANY_TO_ONE', target: 'kit.Owner' },
    { name: 'state', type: 'ENUM', defaultValue: 'open', selectionList: [{ value: 'open' }] },
    { name: 'day', type: 'DATE', defaultNow: true },
    { name: 'isMain', type: 'BOOLEAN', required: true },
    { name: 'isKnown', type: 'BOOLEAN' },
    { name: 'tags', type: 'MANY_TO_MANY', target: 'kit.Tag' },
    { name: 'label', type: 'STRING', readonly: true, virtual: true, defaultValue: 'x' },
    { name: 'createdOn', type: 'DATETIME', readonly: true },
  ])

  test('a new record has the defaults of its fields, and the day of the person', () => {
    inZone('Pacific/Kiritimati', () =>
      expect(buildInitialValues(model, new Date('2024-02-29T23:30:00.000Z'))).toEqual({
        state: 'open',
        day: '2024-03-01',
        isMain: false,
        tags: [],
      }),
    )
  })

  test('a form has all fields but those that the service keeps', () => {
    expect(listFormFields(model).map(({ name }) => name)).not.toContain('createdOn')
    expect(listFormFields(model).map(({ name }) => name)).toContain('label')
  })

  test('a line has the fields that can be written, without the way back to its owner', () => {
    const names = listLineFields(model, 'owner').map(({ name }) => name)
    expect(names).toEqual(['state', 'day', 'isMain', 'isKnown', 'tags'])
  })

  test('a new line has a key of its own, and goes without a trace while nobody has filled it in', () => {
    const [first, second] = [createLine(model, 'owner'), createLine(model, 'owner')]
    expect(findLineKey(first, 0)).not.toBe(findLineKey(second, 1))
    expect(isUntouched(first, model)).toBe(true)
    expect(isUntouched({ ...first, isKnown: null }, model)).toBe(true)
    expect(isUntouched({ ...first, isKnown: false }, model)).toBe(false)
    expect(isUntouched({ id: 5, version: 0 }, model)).toBe(false)
  })

  test('removed lines are shown where they were', () => {
    const [a, b, c, d] = [{ id: 1 }, { id: 2 }, { id: 3 }, { $key: 'new-1' }]
    const shown = mergeRemoved(
      [b, d],
      [
        { line: c, position: 2 },
        { line: a, position: 0 },
      ],
    )
    expect(shown).toEqual([
      { line: a, index: undefined },
      { line: b, index: 0 },
      { line: c, index: undefined },
      { line: d, index: 1 },
    ])
  })

  test('a removed line that the record has again is not removed', () => {
    expect(mergeRemoved([{ id: 1 }], [{ line: { id: 1 }, position: 0 }])).toEqual([
      { line: { id: 1 }, index: 0 },
    ])
  })
})
