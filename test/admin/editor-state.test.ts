import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createEditorState,
  receiveAnswer,
  receiveRecord,
  setFieldValue,
  type Arrival,
  type EditorState,
} from '../../admin/editor/editor-state.js'
import { listChangedFields, type RecordValues } from '../../admin/editor/record-values.js'
import { makeField } from './fields.js'

const FIELDS = ['first', 'last', 'phone'].map((name) => makeField(name, 'string'))
const RECORD = { id: 1, version: 0, first: 'Ada', last: 'Byron', phone: null }
const AUTHOR = { by: { id: 2, name: 'Anna' }, on: '2026-01-01T10:00:00.000Z' }

type Receive = (state: EditorState, arrival: Arrival) => EditorState

const receive: Receive = (state, arrival) => receiveRecord(FIELDS, state, arrival)

function arrive(record: RecordValues, focused?: string): Arrival {
  return { record, authors: { last: AUTHOR, phone: AUTHOR }, focused }
}

type Step =
  | { readonly kind: 'type'; readonly name: string; readonly value: string }
  | {
      readonly kind: 'arrive'
      readonly name: string
      readonly value: string
      readonly focused: string | undefined
    }

const name = fc.constantFrom('first', 'last', 'phone')
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('type' as const), name, value: fc.constantFrom('x', 'y', 'z') }),
  fc.record({
    kind: fc.constant('arrive' as const),
    name,
    value: fc.constantFrom('x', 'p', 'q'),
    focused: fc.option(name, { nil: undefined }),
  }),
)

/** Fails if a record that arrives changes what was typed, or the field with the focus. */
function requireTypedTextStays(run: Receive): void {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let state = createEditorState(RECORD)
      let stored: Record<string, unknown> & { version: number } = { ...RECORD }
      for (const each of steps) {
        if (each.kind === 'type') {
          state = setFieldValue(state, each.name, each.value)
          expect(state.values[each.name]).toBe(each.value)
          continue
        }
        stored = { ...stored, [each.name]: each.value, version: stored.version + 1 }
        const before = state
        const dirty = listChangedFields(FIELDS, before.values, before.base).map((field) => field.name)
        state = run(before, arrive(stored, each.focused))
        const still = [...dirty, ...(each.focused === undefined ? [] : [each.focused])]
        for (const kept of still) expect(state.values[kept]).toBe(before.values[kept])
        // A save names the version of the base, so the base must not move while something is unsaved.
        if (dirty.length > 0) expect(state.base).toBe(before.base)
        expect(state.latest).toBe(stored)
        for (const field of FIELDS) {
          if (stored[field.name] === state.base[field.name]) continue
          const isSeen = state.values[field.name] === stored[field.name]
          const isMarked = state.marks[field.name]?.value === stored[field.name]
          expect(isSeen || isMarked).toBe(true)
        }
      }
    }),
    { numRuns: 500, seed: 11 },
  )
}

describe('a record that arrives while a form is open', () => {
  test('changes nothing that was typed, and every value of others is shown or marked', () => {
    requireTypedTextStays(receive)
  })

  const mutants: Readonly<Record<string, Receive>> = {
    'fills the form again': (state, { record }) => ({
      ...state,
      base: record,
      values: record,
      latest: record,
      marks: {},
    }),
    'moves the version and keeps old values': (state, arrival) => ({
      ...receive(state, arrival),
      base: arrival.record,
    }),
    'writes under the caret': (state, arrival) => receive(state, { ...arrival, focused: undefined }),
    'marks nothing': (state, arrival) => ({ ...receive(state, arrival), marks: {} }),
  }
  for (const [mistake, mutant] of Object.entries(mutants))
    test(`the property catches a form that ${mistake}`, () => {
      expect(() => requireTypedTextStays(mutant)).toThrow()
    })

  test('is shown at once while nothing is typed, with the name of its author', () => {
    const state = receive(createEditorState(RECORD), arrive({ ...RECORD, version: 1, last: 'Lovelace' }))
    expect(state.values['last']).toBe('Lovelace')
    expect(state.base['version']).toBe(1)
    expect(state.marks['last']).toEqual({ value: 'Lovelace', ...AUTHOR, isAdopted: true })
  })

  test('is only marked at a field that was changed', () => {
    const typed = setFieldValue(createEditorState(RECORD), 'last', 'King')
    const state = receive(typed, arrive({ ...RECORD, version: 1, last: 'Lovelace' }, 'last'))
    expect(state.values['last']).toBe('King')
    expect(state.marks['last']).toEqual({ value: 'Lovelace', ...AUTHOR, isAdopted: false })
  })

  test('needs no mark where both have the same value', () => {
    const typed = setFieldValue(createEditorState(RECORD), 'last', 'Lovelace')
    const state = receive(typed, arrive({ ...RECORD, version: 1, last: 'Lovelace' }))
    expect(state.marks).toEqual({})
  })
})

describe('the answer to a save', () => {
  test('is adopted with its version, and what was typed meanwhile stays unsaved', () => {
    const sent = setFieldValue(createEditorState(RECORD), 'last', 'Love')
    const typing = setFieldValue(sent, 'last', 'Lovelace')
    const answer = { ...RECORD, version: 1, last: 'Love', phone: '555' }
    const state = receiveAnswer(FIELDS, typing, sent.values, answer)
    expect(state.values).toEqual({ ...answer, last: 'Lovelace' })
    expect(state.base).toBe(answer)
    expect(listChangedFields(FIELDS, state.values, state.base).map((field) => field.name)).toEqual(['last'])
    expect(state.status).toBe('idle')
  })

  test('leaves nothing unsaved if nothing was typed meanwhile', () => {
    const sent = setFieldValue(createEditorState(RECORD), 'last', 'Love')
    const state = receiveAnswer(FIELDS, sent, sent.values, { ...RECORD, version: 1, last: 'Love' })
    expect(listChangedFields(FIELDS, state.values, state.base)).toEqual([])
    expect(state.status).toBe('saved')
  })

  test('an error of a field is gone when the field is edited, and the others stay', () => {
    const state = {
      ...createEditorState(RECORD),
      errors: { last: 'too long', 'lines[0].city': 'is required' },
    }
    expect(setFieldValue(state, 'last', 'x').errors).toEqual({ 'lines[0].city': 'is required' })
    expect(setFieldValue(state, 'lines', []).errors).toEqual({ last: 'too long' })
  })
})
