// A model with as many fields as there are people who change a record at once, each of them another.
import type { Source } from '../../src/model/catalog/catalog.js'
import { defineModel, type FieldDefinition } from '../../src/model/definition/define-model.js'

export const WIDTH = 1_000
export const WIDE = 'lab.Wide'

export const FIELDS: readonly string[] = Array.from({ length: WIDTH }, (_, index) => `f${index}`)

// Short texts: a row of PostgreSQL is a page at most, and a thousand whole numbers would not fit.
const short: FieldDefinition = { type: 'string', length: 4 }

export const models: readonly Source[] = [
  {
    file: 'test/faults/wide-model.ts',
    definition: defineModel({
      name: WIDE,
      fields: {
        ...Object.fromEntries(FIELDS.map((name) => [name, short])),
        /** Right only if it is worked out from what everybody has written. */
        total: {
          type: 'integer',
          computed: (record) => FIELDS.reduce((sum, name) => sum + Number(record[name] ?? 0), 0),
        },
      },
      listFields: ['total'],
    }),
  },
]
