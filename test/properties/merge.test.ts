import fc from 'fast-check'
import { expect, test } from 'vitest'
import { merge, type Verdict } from '../../src/model/merge.js'
import { sameValue, type Values } from '../../src/model/value.js'

const FIELDS = ['a', 'b', 'c', 'd'] as const
/** Few values, so that sides often agree. */
const value = fc.oneof(
  fc.constantFrom(null, 0, 1, '', 'x', true, false),
  fc.constantFrom<Values[string]>([], [1], { k: 1 }, { k: 1, l: [2] }, { l: [2], k: 1 }),
)
const whole = fc.record(Object.fromEntries(FIELDS.map((name) => [name, value]))) as fc.Arbitrary<Values>
const some = fc.record(Object.fromEntries(FIELDS.map((name) => [name, value])), {
  requiredKeys: [],
}) as fc.Arbitrary<Values>

/** The same said in another way: by the text of sorted JSON. */
function text(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}

function verdictOf(base: string, ours: string, theirs: string): Verdict | undefined {
  if (ours === base) return theirs === base ? undefined : 'theirs'
  if (theirs === base) return 'ours'
  return ours === theirs ? 'same' : 'clash'
}

test('the verdict on every field is exact, whatever base, ours and theirs are', () => {
  fc.assert(
    fc.property(whole, some, whole, (base, ours, theirs) => {
      const result = merge(base, ours, theirs)
      for (const name of FIELDS) {
        const mine = Object.hasOwn(ours, name) ? ours[name] : base[name]
        const verdict = verdictOf(text(base[name]), text(mine), text(theirs[name]))
        expect(result.fields[name]?.verdict).toBe(verdict)
        if (verdict)
          expect(result.fields[name]).toEqual({ base: base[name], ours: mine, theirs: theirs[name], verdict })
      }
      const clashes = Object.values(result.fields).filter(({ verdict }) => verdict === 'clash')
      expect(result).toMatchObject({ baseKnown: true, mergeable: clashes.length === 0 })
    }),
    { numRuns: 5_000 },
  )
})

test('without a base every field that was sent is the same or a clash, and nothing is mergeable', () => {
  fc.assert(
    fc.property(some, whole, (ours, theirs) => {
      const result = merge(undefined, ours, theirs)
      expect(Object.keys(result.fields).sort()).toEqual(Object.keys(ours).sort())
      for (const [name, field] of Object.entries(result.fields)) {
        expect(field).not.toHaveProperty('base')
        expect(field.verdict).toBe(text(ours[name]) === text(theirs[name]) ? 'same' : 'clash')
      }
      expect(result).toMatchObject({ baseKnown: false, mergeable: false })
    }),
    { numRuns: 2_000 },
  )
})

test('values are the same exactly if their sorted JSON is', () => {
  const json = fc.jsonValue({ maxDepth: 3 }).map((item) => JSON.parse(JSON.stringify(item)) as Values[string])
  fc.assert(
    fc.property(json, json, (a, b) => {
      expect(sameValue(a, b)).toBe(text(a) === text(b))
      expect(sameValue(a, JSON.parse(text(a)) as Values[string])).toBe(true)
    }),
    { numRuns: 3_000 },
  )
})
