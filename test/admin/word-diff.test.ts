import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diffWords, type TextPart } from '../../admin/history/word-diff.js'

const MEGABYTE = 1_000_000
/** Generous, because the machine may be busy. An unbounded comparison takes minutes. */
const MAX_MS = 5_000

function join(parts: readonly TextPart[], ...kinds: readonly TextPart['kind'][]): string {
  return parts
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ text }) => text)
    .join('')
}

function expectBothSides(before: string, after: string): readonly TextPart[] {
  const parts = diffWords(before, after)
  // Not toBe: a failure would print texts of a megabyte.
  expect(join(parts, 'same', 'removed') === before).toBe(true)
  expect(join(parts, 'same', 'added') === after).toBe(true)
  return parts
}

const word = fc.constantFrom(
  'the',
  'quick',
  'fox',
  'Ä',
  '漢',
  '字',
  ' ',
  '  ',
  '\n',
  ',',
  '👍',
  '\ud800',
  'e\u0301',
)
const prose = fc.array(word, { maxLength: 60 }).map((words) => words.join(''))
const anything = fc.string({ unit: 'binary', maxLength: 40 })

test('the parts of a comparison give both texts back', () => {
  fc.assert(
    fc.property(fc.oneof(prose, anything), fc.oneof(prose, anything), (a, b) => void expectBothSides(a, b)),
  )
})

test('no part is empty, and neighbours differ in their kind', () => {
  fc.assert(
    fc.property(prose, prose, (before, after) => {
      const parts = diffWords(before, after)
      expect(parts.every(({ text }) => text !== '')).toBe(true)
      expect(parts.every(({ kind }, index) => kind !== parts[index - 1]?.kind)).toBe(true)
    }),
  )
})

test('the words of the same text are all the same', () => {
  fc.assert(
    fc.property(prose, (text) => {
      expect(diffWords(text, text)).toEqual(text === '' ? [] : [{ kind: 'same', text }])
    }),
  )
})

test('one replaced word is marked, and nothing else', () => {
  expect(diffWords('Call her on Monday, please.', 'Call her on Friday, please.')).toEqual([
    { kind: 'same', text: 'Call her on ' },
    { kind: 'removed', text: 'Monday' },
    { kind: 'added', text: 'Friday' },
    { kind: 'same', text: ', please.' },
  ])
})

test('replaced words side by side are marked together', () => {
  expect(diffWords('a big dog', 'a small cat')).toEqual([
    { kind: 'same', text: 'a ' },
    { kind: 'removed', text: 'big dog' },
    { kind: 'added', text: 'small cat' },
  ])
})

test('in scripts without spaces each character is a word', () => {
  expect(diffWords('漢字', '漢語')).toEqual([
    { kind: 'same', text: '漢' },
    { kind: 'removed', text: '字' },
    { kind: 'added', text: '語' },
  ])
})

test('one changed word in a text of a megabyte is found', () => {
  const line = 'All the words of this line stay as they are.\n'
  const text = line.repeat(MEGABYTE / line.length)
  const begin = Date.now()
  const parts = expectBothSides(`${text}old ${text}`, `${text}new ${text}`)
  expect(Date.now() - begin).toBeLessThan(MAX_MS)
  expect(parts.filter(({ kind }) => kind !== 'same')).toEqual([
    { kind: 'removed', text: 'old' },
    { kind: 'added', text: 'new' },
  ])
})

test('texts of a megabyte that differ in many places are compared in bounded time', () => {
  const build = (modulus: number, separator: string) =>
    Array.from({ length: MEGABYTE / 5 }, (_, index) => `${(index * 7919) % modulus}`).join(separator)
  for (const separator of [' ', '\n', '']) {
    const begin = Date.now()
    expectBothSides(build(1009, separator), build(997, separator))
    expect(Date.now() - begin).toBeLessThan(MAX_MS)
  }
})
