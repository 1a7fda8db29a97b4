import { defineModel, type RecordOf } from 'verso-records'

// Every record also has id, version, createdOn, createdBy, updatedOn and updatedBy. The service sets them.
export const Task = defineModel({
  name: 'todo.Task',
  fields: {
    // A string has up to 255 characters unless it declares a length. A field without "required" is optional.
    subject: { type: 'string', required: true, length: { min: 1, max: 120 } },

    // No two tasks have the same number. Any number of tasks may have none.
    number: { type: 'string', unique: true, length: 20, help: 'Such as HOME-7' },

    // Other values are rejected. The title is the label for people.
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

    // Decimals are exact. In JSON they are strings such as "12.50".
    hours: { type: 'decimal', precision: 8, scale: 2, min: 0 },

    // "now" is the date or the time of the create.
    since: { type: 'date', default: 'now' },
    due: { type: 'datetime' },
    remindAt: { type: 'time' },

    isUrgent: { type: 'boolean', default: false },
    description: { type: 'text' },
    ticket: { type: 'uuid', title: 'Help desk ticket' },
    extra: { type: 'json' },

    // Clients can write it, but no response contains it. The service stores only a hash.
    pin: { type: 'string', secret: 'password', length: 64 },

    // The service computes this from the other fields on every write, and stores it.
    summary: {
      type: 'string',
      computed: ({ number, subject }) =>
        [number, subject].filter((text) => typeof text === 'string').join(' '),
    },

    // To rename a field and keep its values, give its previous name. The migration at start renames the column:
    // owner: { type: 'string', renamedFrom: 'assignee' },
  },
  // The field that labels a task, for example in references to it.
  nameField: 'summary',
  // The fields that a list shows besides id and version.
  listFields: ['summary', 'state', 'due'],
  // No two tasks have the same subject and the same date in "since".
  unique: [['subject', 'since']],
  // Makes searches by state, or by state and due, fast.
  indexes: [['state', 'due']],
  // Adds a field "archived". Lists leave archived tasks out.
  archived: true,
})

// The type of a task in a response, for use in your own programs.
export type Task = RecordOf<typeof Task>
