import { expect, test } from 'vitest'
import { areEqualValues } from '../../admin/history/version-values.js'

test('related records are equal if their ids are, whatever their names and versions', () => {
  expect(areEqualValues({ id: 1, $version: 0, name: 'Old' }, { id: 1, $version: 3, name: 'New' })).toBe(true)
  expect(areEqualValues({ id: 1 }, { id: 1, $version: 3, name: 'New' })).toBe(true)
  expect(areEqualValues({ id: 1, $version: 0 }, { id: 2, $version: 0 })).toBe(false)
  expect(areEqualValues([{ id: 1 }, { id: 2 }], [{ id: 1, $version: 4 }, { id: 2 }])).toBe(true)
  expect(areEqualValues([{ id: 1 }], [{ id: 1 }, { id: 2 }])).toBe(false)
})

test('a field without a value equals one that is missing', () => {
  expect(areEqualValues(null, undefined)).toBe(true)
  expect(areEqualValues(null, '')).toBe(false)
})

test('the order of keys in JSON does not matter, that of lists does', () => {
  expect(areEqualValues({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true)
  expect(areEqualValues({ a: 1, b: [1, 2] }, { a: 1, b: [2, 1] })).toBe(false)
})
