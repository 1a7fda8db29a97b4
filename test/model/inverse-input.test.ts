import { expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { matchesClaim } from '../../src/model/write/inverse-input.js'
import { models } from '../models.js'

const person = Catalog.from(models).get('rel.Person')
const member = (id: number, fields: object = {}) => ({ id, fields: new Map(Object.entries(fields)) })
const shown = [
  {
    id: 1,
    name: 'One',
    rate: '1.50',
    company: { id: 7, $version: 3, name: 'C' },
    circles: [{ id: 4 }, { id: 5 }],
  },
  { id: 2, name: null, rate: null, company: null, circles: [] },
]

type Compare = typeof matchesClaim
type Case = readonly [claimed: Parameters<Compare>[1], stored: unknown, isSame: boolean]

const CASES: readonly Case[] = [
  [[], [], true],
  [[], null, true],
  [[member(1), member(2)], shown, true],
  [[member(2), member(1)], shown, true],
  [[member(1, { name: 'One', rate: 1.5 }), member(2, { rate: null })], shown, true],
  [[member(1, { company: { id: 7, version: 9 }, circles: [{ id: 5 }, { id: 4 }] }), member(2)], shown, true],
  [[member(2)], shown[1], true],
  [[], shown, false],
  [[member(1)], shown, false],
  [[member(1), member(1)], shown, false],
  [[member(1), member(3)], shown, false],
  [[member(1), member(2), member(3)], shown, false],
  [[member(1)], [], false],
  [[member(1)], null, false],
  [[], undefined, false],
  [[member(1, { name: 'Other' }), member(2)], shown, false],
  [[member(1, { name: null }), member(2)], shown, false],
  [[member(1), member(2, { name: '' })], shown, false],
  [[member(1, { rate: 'much' }), member(2)], shown, false],
  [[member(1, { isActive: null }), member(2)], shown, false],
  [[member(1, { company: null }), member(2)], shown, false],
  [[member(1, { company: { id: 7, name: 'Other' } }), member(2)], shown, false],
  [[member(1, { circles: [{ id: 4 }] }), member(2)], shown, false],
]

/** Each mutant would silently drop an edit. */
const MUTANTS: Readonly<Record<string, Compare>> = {
  'that accepts every claim': () => true,
  'that ignores missing members': (target, members, stored) =>
    matchesClaim(
      target,
      members,
      [stored].flat().filter((each) => members.some(({ id }) => id === idOf(each))),
    ),
  'that ignores added members': (target, members, stored) =>
    matchesClaim(
      target,
      members.filter(({ id }) => [stored].flat().some((each) => idOf(each) === id)),
      stored,
    ),
  'that only counts members': (_target, members, stored) => members.length === [stored ?? []].flat().length,
  'that ignores the fields of members': (target, members, stored) =>
    matchesClaim(
      target,
      members.map(({ id }) => member(id)),
      stored,
    ),
}

function idOf(each: unknown): unknown {
  return (each as { readonly id?: number } | null)?.id
}

const failuresOf = (compare: Compare) =>
  CASES.filter(([claimed, stored, isSame]) => compare(person, claimed, stored) !== isSame)

test('an inverse relation sent back must have the stored members and values', () => {
  expect(failuresOf(matchesClaim)).toEqual([])
})

test.each(Object.entries(MUTANTS))('a mutant of the comparison %s is caught', (_, mutant) => {
  expect(failuresOf(mutant)).not.toEqual([])
})
