import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  applyChoice,
  listTheirFields,
  mergeRecords,
  type MergeResult,
  type Sides,
} from '../../admin/editor/merge.js'
import {
  buildChanges,
  findId,
  isSameValue,
  listLines,
  type Line,
  type RecordValues,
} from '../../admin/editor/record-values.js'
import { COMPANY_FIELDS, makeField } from './fields.js'

type Merge = (sides: Sides) => MergeResult

const merge: Merge = (sides) => mergeRecords(COMPANY_FIELDS, sides)
const PLAIN = COMPANY_FIELDS.filter(({ kind }) => kind !== 'links' && kind !== 'owned-list')

const text = fc.constantFrom(null, 'a', 'b', 'c')
const base = fc.record({
  name: text,
  notes: text,
  owner: fc.constantFrom(null, { id: 1 }, { id: 2 }),
  tags: fc.subarray([1, 2, 3]).map((ids) => ids.map((id) => ({ id }))),
  addresses: fc
    .subarray([1, 2, 3])
    .chain((ids) =>
      fc.tuple(
        ...ids.map((id) =>
          fc.record({ id: fc.constant(id), version: fc.constant(0), city: text, street: text }),
        ),
      ),
    ),
})

/** A side: plain values chosen anew, links and lines added, removed and changed. */
function makeSide(record: RecordValues, prefix: string): fc.Arbitrary<RecordValues> {
  const lines = listLines(record['addresses'])
  return fc.record({
    name: fc.oneof(fc.constant(record['name']), text),
    notes: fc.oneof(fc.constant(record['notes']), text),
    owner: fc.constantFrom(record['owner'], null, { id: 2 }),
    tags: fc.subarray([1, 2, 3, 4]).map((ids) => ids.map((id) => ({ id }))),
    addresses: fc
      .tuple(
        fc.subarray([...lines]),
        fc.array(fc.record({ index: fc.nat(2), field: fc.constantFrom('city', 'street'), value: text }), {
          maxLength: 2,
        }),
        fc.nat(2),
      )
      .map(([kept, edits, added]) => [
        ...kept.map((line, index) =>
          edits
            .filter((edit) => edit.index === index)
            .reduce<Line>((changed, { field, value }) => ({ ...changed, [field]: value }), line),
        ),
        ...Array.from({ length: added }, (_, index) => ({ city: `${prefix}${index}`, street: null })),
      ]),
  })
}

const sides = base.chain((record) =>
  fc
    .tuple(makeSide(record, 'ours'), makeSide(record, 'theirs'))
    // The service has given ids to the lines that they added.
    .map(([ours, theirs]) => ({
      base: record,
      ours,
      theirs: {
        ...theirs,
        addresses: listLines(theirs['addresses']).map((line, index) => ({
          id: 100 + index,
          version: 0,
          ...line,
        })),
      },
    })),
)

/** Fails if a merge loses an edit of either side, or reports a clash where there is none. */
function requireNothingLost(run: Merge): void {
  fc.assert(
    fc.property(sides, (each) => {
      const merged = run(each)
      requirePlainFields(each, merged)
      requireLinks(each, merged)
      requireLines(each, merged)
    }),
    { numRuns: 400, seed: 7 },
  )
}

function requirePlainFields({ base: before, ours, theirs }: Sides, { values, clashes }: MergeResult): void {
  for (const field of PLAIN) {
    const { name } = field
    const isOurs = !isSameValue(field, ours[name], before[name])
    const isTheirs = !isSameValue(field, theirs[name], before[name])
    const isClash = isOurs && isTheirs && !isSameValue(field, ours[name], theirs[name])
    expect(clashes.some((clash) => clash.field.name === name)).toBe(isClash)
    const expected = isOurs ? ours[name] : theirs[name]
    expect(isSameValue(field, values[name], expected)).toBe(true)
  }
}

function requireLinks({ base: before, ours, theirs }: Sides, { values }: MergeResult): void {
  const [old, mine, current, result] = [before, ours, theirs, values].map(
    (each) => new Set(listLines(each['tags']).map(findId)),
  ) as [Set<number>, Set<number>, Set<number>, Set<number>]
  for (const id of [1, 2, 3, 4]) {
    const isKept = old.has(id) ? mine.has(id) && current.has(id) : mine.has(id) || current.has(id)
    expect(result.has(id)).toBe(isKept)
  }
}

function requireLines({ base: before, ours, theirs }: Sides, { values, clashes }: MergeResult): void {
  const [old, mine, current, result] = [before, ours, theirs, values].map((each) =>
    listLines(each['addresses']),
  ) as [Line[], Line[], Line[], Line[]]
  for (const added of mine.filter(({ id }) => id === undefined)) expect(result).toContainEqual(added)
  for (const added of current.filter(({ id }) => Number(id) >= 100)) expect(result).toContainEqual(added)
  for (const line of old) {
    const find = (lines: readonly Line[]) => lines.find(({ id }) => id === line['id'])
    const [our, their, merged] = [find(mine), find(current), find(result)]
    const clashesOfLine = clashes.filter((clash) => clash.line?.id === line['id'])
    if (!our || !their) {
      const survivor = our ?? their
      const isChanged =
        survivor !== undefined && (survivor['city'] !== line['city'] || survivor['street'] !== line['street'])
      expect(clashesOfLine.length).toBe(isChanged ? 1 : 0)
      if (!isChanged) expect(merged).toBeUndefined()
      continue
    }
    for (const name of ['city', 'street']) {
      const isOurs = our[name] !== line[name]
      const isTheirs = their[name] !== line[name]
      const isClash = isOurs && isTheirs && our[name] !== their[name]
      expect(clashesOfLine.some(({ lineField }) => lineField === name)).toBe(isClash)
      expect(merged?.[name]).toBe(isOurs ? our[name] : their[name])
    }
  }
}

describe('a merge of a form with what others have saved', () => {
  test('keeps every edit of both sides, and reports exactly the values that both changed', () => {
    requireNothingLost(merge)
  })

  const mutants: Readonly<Record<string, Merge>> = {
    'takes our whole record': ({ ours }) => ({ values: ours, clashes: [] }),
    'takes their whole record': ({ theirs }) => ({ values: theirs, clashes: [] }),
    'takes our list of lines': (each) => {
      const merged = merge(each)
      return { ...merged, values: { ...merged.values, addresses: each.ours['addresses'] } }
    },
    'takes our set of links': (each) => {
      const merged = merge(each)
      return { ...merged, values: { ...merged.values, tags: each.ours['tags'] } }
    },
    'compares lines by their position': (each) => {
      const renumber = (record: RecordValues) => ({
        ...record,
        addresses: listLines(record['addresses']).map((line, index) => ({ ...line, id: index })),
      })
      return merge({ base: renumber(each.base), ours: renumber(each.ours), theirs: renumber(each.theirs) })
    },
    'reports no clash': (each) => ({ ...merge(each), clashes: [] }),
    'reports every change as a clash': (each) => {
      const merged = merge(each)
      const changed = PLAIN.filter(
        (field) => !isSameValue(field, each.ours[field.name], each.base[field.name]),
      )
      const clashes = changed.map((field) => ({ field, base: null, ours: null, theirs: null }))
      return { ...merged, clashes: [...merged.clashes, ...clashes] }
    },
  }
  for (const [mistake, mutant] of Object.entries(mutants))
    test(`the property catches a merge that ${mistake}`, () => {
      expect(() => requireNothingLost(mutant)).toThrow()
    })

  test('fields of a merge group clash although only one side changed each of them', () => {
    const [name, notes] = COMPANY_FIELDS
    if (!name || !notes) throw new Error('the fields are missing')
    const before = { name: 'a', notes: 'a' }
    const each = { base: before, ours: { name: 'b', notes: 'a' }, theirs: { name: 'a', notes: 'c' } }
    expect(mergeRecords([name, notes], each).clashes).toEqual([])
    const { clashes } = mergeRecords([name, notes], each, new Set(['name', 'notes']))
    expect(clashes.map(({ field }) => field.name)).toEqual(['name', 'notes'])
  })

  test('a file that both sides changed clashes, and choosing theirs gives up the pending one', () => {
    const photo = makeField('photo', 'file')
    const pending = { pendingFile: null }
    const each = { base: {}, ours: { photo: pending }, theirs: { photo: { name: 'b.png' } } }
    expect(mergeRecords([photo], each).clashes).toEqual([])
    const { values, clashes } = mergeRecords([photo], each, new Set(['photo']))
    const [clash] = clashes
    if (!clash) throw new Error('no clash')
    expect(applyChoice(values, clash, clash.ours)['photo']).toBe(pending)
    expect(applyChoice(values, clash, clash.theirs)['photo']).toBeUndefined()
  })
})

describe('a choice in a conflict', () => {
  const line = { id: 1, version: 2, city: 'Kiel', street: 'x' }

  test('replaces one value of one line', () => {
    const each = {
      base: { addresses: [{ ...line, street: 'old' }] },
      ours: { addresses: [{ ...line, street: 'mine' }] },
      theirs: { addresses: [{ ...line, street: 'theirs' }] },
    }
    const { values, clashes } = merge(each)
    expect(clashes).toHaveLength(1)
    const [clash] = clashes
    if (!clash) throw new Error('no clash')
    expect(applyChoice(values, clash, 'both')['addresses']).toEqual([{ ...line, street: 'both' }])
  })

  test('brings a line back that they removed, as a new line', () => {
    const each = {
      base: { addresses: [{ ...line, street: 'old' }] },
      ours: { addresses: [line] },
      theirs: { addresses: [] },
    }
    const { values, clashes } = merge(each)
    const [clash] = clashes
    if (!clash) throw new Error('no clash')
    expect(applyChoice(values, clash, clash.ours)['addresses']).toEqual([{ city: 'Kiel', street: 'x' }])
    expect(applyChoice(values, clash, clash.theirs)['addresses']).toEqual([])
  })

  test('removes a line that they changed', () => {
    const each = {
      base: { addresses: [{ ...line, street: 'old' }] },
      ours: { addresses: [] },
      theirs: { addresses: [line] },
    }
    const { values, clashes } = merge(each)
    const [clash] = clashes
    if (!clash) throw new Error('no clash')
    expect(applyChoice(values, clash, clash.ours)['addresses']).toEqual([])
    expect(applyChoice(values, clash, clash.theirs)['addresses']).toEqual([line])
  })
})

describe('the body of a save', () => {
  const before = {
    name: 'a',
    owner: { id: 1, $version: 0, fullName: 'Ada' },
    tags: [{ id: 1, $version: 0, name: 't' }],
    addresses: [
      { id: 1, version: 4, $version: 4, city: 'Kiel', street: 'x' },
      { id: 2, version: 0, $version: 0, city: 'Rome', street: 'y' },
    ],
  }

  test('has nothing if nothing was changed', () => {
    expect(buildChanges(COMPANY_FIELDS, { ...before }, before)).toEqual({})
  })

  test('has only what was changed, and the version of a changed line', () => {
    const values = {
      ...before,
      owner: { id: 2, fullName: 'Bob' },
      tags: [...before.tags, { id: 5, name: 'new' }],
      addresses: [
        { ...before.addresses[0], city: 'Bonn' },
        before.addresses[1],
        { $key: 'n1', city: 'Oslo' },
      ],
    }
    expect(buildChanges(COMPANY_FIELDS, values, before)).toEqual({
      owner: { id: 2 },
      tags: [{ id: 1 }, { id: 5 }],
      addresses: [{ id: 1, version: 4, city: 'Bonn' }, { id: 2 }, { city: 'Oslo' }],
    })
  })

  test('clears a text with null and a reference with null', () => {
    expect(buildChanges(COMPANY_FIELDS, { ...before, name: '', owner: null }, before)).toEqual({
      name: null,
      owner: null,
    })
  })

  test('the fields of others are those that they changed and we did not', () => {
    const each = {
      base: { name: 'a', notes: 'a' },
      ours: { name: 'b', notes: 'a' },
      theirs: { name: 'b', notes: 'c' },
    }
    expect(listTheirFields(COMPANY_FIELDS, each).map(({ name }) => name)).toEqual(['notes'])
  })

  test('our new line that has got an id is no change of others', () => {
    const line = { id: 1, version: 0, city: 'Kiel' }
    const ours = { addresses: [line, { $key: 'n1', city: 'Oslo' }] }
    const stored = { id: 2, version: 0, city: 'Oslo', street: null }
    const find = (addresses: readonly Line[]) =>
      listTheirFields(COMPANY_FIELDS, { base: { addresses: [line] }, ours, theirs: { addresses } }).map(
        ({ name }) => name,
      )
    expect(find([line, stored])).toEqual([])
    expect(find([line, stored, { id: 3, version: 0, city: 'Rome' }])).toEqual(['addresses'])
  })
})
