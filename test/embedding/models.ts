// The models of the tests of embedding.
import { defineHooks, defineModel, extendModel } from 'verso-records'

export const Project = defineModel({
  name: 'embed.Project',
  fields: { name: { type: 'string', required: true } },
})

export const Task = defineModel({
  name: 'embed.Task',
  fields: {
    title: { type: 'string', required: true },
    state: { type: 'enum', selection: ['open', 'doing', 'done'], default: 'open' },
    cost: { type: 'decimal', precision: 10, scale: 2 },
    project: { type: 'many-to-one', target: 'embed.Project' },
    notes: { type: 'text' },
  },
})

export const priority = extendModel({ name: 'embed.Task', fields: { priority: { type: 'integer' } } })

export const taskRules = defineHooks(Task, {
  beforeSave: ({ after }) => (after.title === 'shout' ? { title: 'SHOUT' } : undefined),
  validate: ({ after }) => (after.title === 'x' ? { title: 'must be longer' } : undefined),
})
