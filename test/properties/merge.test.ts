import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mergeRecords, canApplyOurs, type Verdict } from '../../src/model/write/merge.js'
import { isSameValue, type Values } from '../../src/model/values/value.js'

const FIELDS = ['a', 'b', 'c', 'd'] as const
/** Few values, so that both sides often agree. */
const value = fc.oneof(
  fc.constantFrom(null, 0, 1, '', 'x', true, false),
  fc.constantFrom<Values[string]>([], [1], { k: 1 }, { k: 1, l: [2] }, { l: [2], k: 1 }),
)
const whole = fc.record(Object.fromEntries(FIELDS.map((name) => [name, value]))) as fc.Arbitrary<Values>
const some = fc.record(Object.fromEntries(FIELDS.map((name) => [name, value])), {
  requiredKeys: [],
}) as fc.Arbitrary<Values>

/** The value as JSON text with sorted keys. */
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

test('the merge verdict on every field is exact for random base, ours and theirs', () => {
  fc.assert(
    fc.property(whole, some, whole, (base, ours, theirs) => {
      const result = mergeRecords(base, ours, theirs)
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
    { numRuns: 2_000 },
  )
})

/** One group of two or three fields, and perhaps another of the rest. */
const groups = fc
  .tuple(fc.shuffledSubarray([...FIELDS], { minLength: 2, maxLength: 3 }), fc.boolean())
  .map(([first, isAll]) => {
    const rest = FIELDS.filter((name) => !first.includes(name))
    return isAll && rest.length > 1 ? [first, rest] : [first]
  })

test('a merge group that both sides changed differently is a clash as a whole', () => {
  fc.assert(
    fc.property(whole, some, whole, groups, (base, ours, theirs, mergeGroups) => {
      const [plain, result] = [
        mergeRecords(base, ours, theirs),
        mergeRecords(base, ours, theirs, mergeGroups),
      ]
      const ourSide: Values = { ...base, ...ours }
      expect(Object.keys(result.fields)).toEqual(Object.keys(plain.fields))
      for (const name of FIELDS) {
        const group = mergeGroups.find((each) => each.some((other) => other === name)) ?? []
        const weMoved = group.some((other) => text(ourSide[other]) !== text(base[other]))
        const theyMoved = group.some((other) => text(theirs[other]) !== text(base[other]))
        const weDiffer = group.some((other) => other in ours && text(ours[other]) !== text(theirs[other]))
        const own = plain.fields[name]
        const isHeld = own !== undefined && weMoved && theyMoved && weDiffer
        expect(result.fields[name]).toEqual(isHeld ? { ...own, verdict: 'clash' } : own)
      }
      expect(result.mergeable).toBe(Object.values(result.fields).every(({ verdict }) => verdict !== 'clash'))
    }),
    { numRuns: 2_000 },
  )
})

/** True if the written group equals neither their version nor ours. */
function isMixed(base: Values, ours: Values, theirs: Values, group: readonly string[]): boolean {
  const written: Values = { ...theirs, ...ours }
  const differs = (side: Values) => group.some((name) => text(side[name]) !== text(written[name]))
  return differs(theirs) && differs({ ...base, ...ours })
}

test('a merged update writes each merge group from one side and loses no value of the others', () => {
  fc.assert(
    fc.property(whole, some, whole, groups, (base, ours, theirs, mergeGroups) => {
      const isOnTop = canApplyOurs(mergeRecords(base, ours, theirs, mergeGroups), ours)
      const isLost = (name: string) =>
        text(theirs[name]) !== text(base[name]) && text(theirs[name]) !== text(ours[name])
      // Values of the others are never lost: exactly so without groups, at least so with them.
      if (isOnTop) {
        expect(Object.keys(ours).filter(isLost)).toEqual([])
        expect(mergeGroups.filter((group) => isMixed(base, ours, theirs, group))).toEqual([])
      }
      expect(canApplyOurs(mergeRecords(base, ours, theirs), ours)).toBe(!Object.keys(ours).some(isLost))
    }),
    { numRuns: 2_000 },
  )
})

test('a mutant that ignores merge groups is caught', () => {
  const found = fc.check(
    fc.property(whole, some, whole, groups, (base, ours, theirs, mergeGroups) => {
      const isOnTop = canApplyOurs(mergeRecords(base, ours, theirs), ours)
      return !isOnTop || !mergeGroups.some((group) => isMixed(base, ours, theirs, group))
    }),
    { numRuns: 2_000 },
  )
  expect(found.failed).toBe(true)
})

test('without a base every field sent is the same or a clash, and nothing is mergeable', () => {
  fc.assert(
    fc.property(some, whole, (ours, theirs) => {
      const result = mergeRecords(undefined, ours, theirs)
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

test('two values are equal exactly if their sorted JSON is equal', () => {
  const json = fc.jsonValue({ maxDepth: 3 }).map((item) => JSON.parse(JSON.stringify(item)) as Values[string])
  fc.assert(
    fc.property(json, json, (a, b) => {
      expect(isSameValue(a, b)).toBe(text(a) === text(b))
      expect(isSameValue(a, JSON.parse(text(a)) as Values[string])).toBe(true)
    }),
    { numRuns: 3_000 },
  )
})
