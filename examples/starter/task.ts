import { defineModel, type RecordOf } from 'verso-records'

// Every record also has an id, a version, createdOn, createdBy, updatedOn and updatedBy.
export const Task = defineModel({
  name: 'todo.Task',
  fields: {
    // Up to 255 characters unless a length is given. Without "required" a field may be left out.
    subject: { type: 'string', required: true, length: { min: 1, max: 120 } },

    // No two tasks have the same number; tasks without a number are fine.
    number: { type: 'string', unique: true, length: 20, help: 'Such as HOME-7' },

    // Only these values are taken; the title is for people.
    state: {
      type: 'enum',
      selection: [
        { value: 'open', title: 'To do' },
        { value: 'doing', title: 'In progress' },
        { value: 'done', title: 'Done' },
      ],
      default: 'open',
    },
    priority: { type: 'integer', min: 1, max: 5, default: 3 },

    // Exact numbers travel as text: "12.50".
    hours: { type: 'decimal', precision: 8, scale: 2, min: 0 },

    // "now" is the day, or the moment, of the write.
    since: { type: 'date', default: 'now' },
    due: { type: 'datetime' },
    remindAt: { type: 'time' },

    isUrgent: { type: 'boolean', default: false },
    description: { type: 'text' },
    ticket: { type: 'uuid', title: 'Ticket of the help desk' },
    extra: { type: 'json' },

    // Can be written, and is never shown again.
    pin: { type: 'string', secret: 'password', length: 64 },

    // Worked out from the other fields on every write, and stored.
    summary: {
      type: 'string',
      computed: ({ number, subject }) =>
        [number, subject].filter((text) => typeof text === 'string').join(' '),
    },

    // When you rename a field, say what it was, and its values stay:
    // owner: { type: 'string', renamedFrom: 'assignee' },
  },
  // Stands for a task where only one field is shown.
  nameField: 'summary',
  // What a list shows besides id and version.
  listFields: ['summary', 'state', 'due'],
  // No two tasks with the same subject on one day.
  unique: [['subject', 'since']],
  indexes: [['state', 'due']],
  // A task can be archived: lists then leave it out.
  archived: true,
})

// The type of a task as the service answers it, for your own programs.
export type Task = RecordOf<typeof Task>
