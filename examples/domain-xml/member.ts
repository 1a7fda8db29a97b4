// What the XML says in Java: the full name of a member.
import { extendModel } from 'verso-records'

export const Member = extendModel({
  name: 'org.example.library.db.Member',
  fields: {
    fullName: {
      type: 'string',
      title: 'Name',
      computed: ({ firstName, lastName }) =>
        [firstName, lastName].filter((name) => typeof name === 'string').join(' '),
    },
  },
})
