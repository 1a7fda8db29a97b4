import { defineModel, type RecordOf } from 'verso-records'

export const Contact = defineModel({
  name: 'com.axelor.contact.db.Contact',
  fields: {
    // Joins the names that are set; null if there are none.
    fullName: {
      type: 'string',
      computed: ({ firstName, lastName }) =>
        [firstName, lastName]
          .filter((name) => typeof name === 'string')
          .join(' ')
          .trim() || null,
    },
    firstName: { type: 'string' },
    lastName: { type: 'string' },
    email: { type: 'string' },
    phone: { type: 'string' },
    dateOfBirth: { type: 'date' },
    notes: { type: 'text' },
    company: { type: 'many-to-one', target: 'com.axelor.contact.db.Company' },
    circles: { type: 'many-to-many', target: 'com.axelor.contact.db.Circle' },
  },
  nameField: 'fullName',
  listFields: ['fullName', 'email'],
})

export type Contact = RecordOf<typeof Contact>
