// A model with a field of its own for each of many concurrent writers.
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import type { FieldDefinition } from '../../src/model/definition/field-definition.js'

const WIDTH = 1_000
export const WIDE = 'lab.Wide'

export const FIELDS: readonly string[] = Array.from({ length: WIDTH }, (_, index) => `f${index}`)

// Short texts: a row of PostgreSQL has at most one page, and a thousand integers would not fit.
const short: FieldDefinition = { type: 'string', length: 4 }

export const models: readonly ModelSource[] = [
  {
    file: 'test/faults/wide-model.ts',
    definition: defineModel({
      name: WIDE,
      fields: {
        ...Object.fromEntries(FIELDS.map((name) => [name, short])),
        /** Correct only if it is computed from the values of all writers. */
        total: {
          type: 'integer',
          computed: (record) => FIELDS.reduce((sum, name) => sum + Number(record[name] ?? 0), 0),
        },
      },
      listFields: ['total'],
    }),
  },
]
