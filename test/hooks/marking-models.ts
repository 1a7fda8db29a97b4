// A model whose hook writes a line for each change into the file MARKS. With HOLD it never returns, and writes nothing.
import { appendFileSync } from 'node:fs'
import type { ModelSource } from '../../src/model/catalog/catalog.js'
import { defineModel } from '../../src/model/definition/define-model.js'

export const MARKED = 'mark.Task'

const Task = defineModel({
  name: MARKED,
  fields: { title: { type: 'string' } },
  hooks: {
    afterCommit: async ({ seq, id, version, after }) => {
      if (process.env['HOLD'] !== undefined) await new Promise(() => undefined)
      const mark = { seq, id, version, title: after?.title, node: process.pid }
      appendFileSync(process.env['MARKS'] ?? '', `${JSON.stringify(mark)}\n`)
    },
  },
})

export const models: readonly ModelSource[] = [{ file: 'marking-models.ts', definition: Task }]
