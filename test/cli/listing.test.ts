import { expect, test } from 'vitest'
import { formatTable } from '../../src/cli/terminal/listing.js'

const COLUMNS = [
  { heading: 'id', format: ({ id }: { id: number; name: string }) => String(id) },
  { heading: 'name', format: ({ name }: { id: number; name: string }) => name },
]

test('columns are aligned below their headings', () => {
  const rows = [
    { id: 1, name: 'Ada' },
    { id: 12, name: 'Bob' },
  ]
  expect(formatTable(rows, COLUMNS)).toBe('id  name\n1   Ada\n12  Bob')
})

test('a name that another user wrote cannot forge a row or send escapes to the terminal', () => {
  const table = formatTable([{ id: 1, name: 'Eve\n2   admin\u001b[2J\u009b2J' }], COLUMNS)
  expect(table.split('\n')).toHaveLength(2)
  expect(table).toContain('Eve\\u000a2   admin\\u001b[2J\\u009b2J')
})
