// ndjson and CSV files read as streams; errors name the line.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readCsv } from '../../src/cli/data/csv-file.js'
import { readNdjson } from '../../src/cli/data/ndjson-file.js'
import { createProgressBar, ProgressBar } from '../../src/cli/terminal/progress.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { formatExactCell, quoteCell } from '../../src/formats/csv.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { IdSet } from '../../src/formats/id-set.js'
import { LineReader } from '../../src/formats/ndjson.js'
import type { RawLine } from '../../src/service/transfer/import-source.js'
import { models } from '../models.js'

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(path.join(tmpdir(), 'verso-lines-'))
})
afterAll(() => {
  rmSync(scratch, { recursive: true })
})

function fileOf(content: string | Buffer): string {
  const file = path.join(scratch, 'file')
  writeFileSync(file, content)
  return file
}

async function all(portions: AsyncIterable<readonly RawLine[]>): Promise<RawLine[]> {
  const lines: RawLine[] = []
  for await (const portion of portions) lines.push(...portion)
  return lines
}

describe('ndjson files', () => {
  const read = (content: string | Buffer, most?: number) =>
    all(readNdjson(fileOf(content), () => undefined, most))

  test('a line that is too long is reported, and the following lines are read', async () => {
    const text = `{"a":1}\n{"b":"${'x'.repeat(2_000_000)}"}\n{"c":3}\n`
    expect(await read(text, 1_000_000)).toEqual([
      { line: 1, input: { a: 1 } },
      { line: 2, error: 'is longer than 1000000 bytes' },
      { line: 3, input: { c: 3 } },
    ])
  })

  test('long lines are read in small portions', async () => {
    const lines = Array.from({ length: 10 }, () => `"${'x'.repeat(1_000_000)}"\n`)
    const sizes: number[] = []
    for await (const portion of readNdjson(fileOf(lines.join('')), () => undefined))
      sizes.push(portion.length)
    expect(Math.max(...sizes)).toBeLessThan(6)
    expect(sizes.reduce((sum, size) => sum + size)).toBe(10)
  })

  test('a multi-byte character stays intact at any chunk boundary', async () => {
    const text = `"${'é👩'.repeat(100_000)}"`
    expect(await read(text)).toEqual([{ line: 1, input: JSON.parse(text) as unknown }])
  })
})

describe('CSV files', () => {
  const model = Catalog.from(models).get('test.Everything')
  const read = (content: string | Buffer) => all(readCsv(fileOf(content), model, () => undefined))

  test('a CSV cell has the value that ndjson would have, and an empty cell is null, not an empty text', async () => {
    const text =
      '\uFEFFid,label,note,whole,active,extra,amount\r\n1,,"",7,true,"{""a"":[1]}",1.50\r\n\n2,"x\ny",a b,x,yes,{,\n'
    expect(await read(text)).toEqual([
      {
        line: 2,
        input: { id: 1, label: null, note: '', whole: 7, active: true, extra: { a: [1] }, amount: '1.50' },
      },
      {
        line: 4,
        input: {
          id: 2,
          label: 'x\ny',
          note: 'a b',
          whole: 'x',
          active: 'yes',
          extra: expect.anything(),
          amount: null,
        },
      },
    ])
  })

  test.each([
    [
      'a line with a wrong number of cells',
      'id,label\n1\n2,b\n3,c,d\n',
      [
        [2, 'has 1 cell, but the header has 2'],
        [4, 'has 3 cells, but the header has 2'],
      ],
    ],
    ['a header with a duplicate name', 'id,label,id\n1,b,2\n', [[1, 'the header has the column "id" twice']]],
    [
      'a header with an unnamed column',
      'id,,label\n1,b,2\n',
      [[1, 'the header has a column without a name']],
    ],
    [
      'a header with unknown fields',
      'id,lable,__proto__\n1,b,c\n2,b,c\n',
      [
        [1, 'lable is not a field of test.Everything (did you mean "label"?)'],
        [1, '__proto__ is not a field of test.Everything'],
      ],
    ],
    ['a wrong header without lines', 'id,lable\n', [[1, 'lable is not a field of test.Everything']]],
    ['semicolons as separators', 'id;label\n1;b\n', [[1, 'the cells must be separated by commas']]],
    ['tabs as separators', 'id\tlabel\n1\tb\n', [[1, 'the cells must be separated by commas']]],
    [
      'carriage returns as line ends',
      'id,label\r1,b\r',
      [[1, 'a line must end in a line feed, not in a carriage return alone']],
    ],
    [
      'one carriage return as line end',
      'id,label\n1,b\r2,c\n3,"d\re"\n',
      [[2, 'a line must end in a line feed, not in a carriage return alone']],
    ],
    ['an unclosed quote', 'id,label\n1,b\n2,"c\n', [[3, 'is not valid CSV: ']]],
  ] as const)('CSV with %s is rejected with the line', async (_, text, faults) => {
    const told = (await read(text)).filter(({ error }) => error !== undefined)
    expect(told.map(({ line }) => line)).toEqual(faults.map(([line]) => line))
    for (const [index, [, fault]] of faults.entries()) expect(told[index]?.error).toContain(fault)
  })

  test('a CSV cell of a relation without an id is rejected', async () => {
    const person = Catalog.from(models).get('rel.Person')
    const [line] = await all(readCsv(fileOf('name,boss,circles\nA,x,1|y\n'), person, () => undefined))
    const faults: string[] = []
    new LineReader(person).read(line?.input, '2024-01-01T00:00:00.000Z', (place, fault) =>
      faults.push(`${place} ${fault}`),
    )
    expect(faults).toEqual([
      'boss must be an id, a whole number from 1',
      'circles[1] must be an id, a whole number from 1',
    ])
  })

  test.each(['=1', '+1', '-x', '@x', '\t=1', '\r=1', '\n=1', '＝1', '＋1', '－1', '＠x'])(
    '%j is escaped as a formula in CSV for spreadsheets, and unchanged in other CSV',
    (text) => {
      const label = model.fields.get('label')
      if (!label) throw new Error('test.Everything has a label')
      expect(formatExactCell(label, text, true)).toMatch(/^"?'/)
      expect(formatExactCell(label, text)).toBe(quoteCell(text))
    },
  )

  test('a list of user names is escaped as a formula in CSV for spreadsheets', () => {
    const team = defineModel({
      name: 'a.Team',
      fields: { users: { type: 'many-to-many', target: 'verso.auth.User' } },
    })
    const users = Catalog.from([{ file: 'team', definition: team }])
      .get('a.Team')
      .fields.get('users')
    if (!users) throw new Error('a.Team has users')
    const members = [{ username: '-bob' }, { username: 'ada' }]
    expect(formatExactCell(users, members)).toBe('-bob|ada')
    expect(formatExactCell(users, members, true)).toBe("'-bob|ada")
    expect(formatExactCell(users, [])).toBe('')
  })

  test('two spellings of a user name in a list become one member if both belong to one user', () => {
    const team = defineModel({
      name: 'a.Team',
      fields: { users: { type: 'many-to-many', target: 'verso.auth.User' } },
    })
    const reader = new LineReader(Catalog.from([{ file: 'team', definition: team }]).get('a.Team'))
    const users = ['ada', 'ａda', 'bob'].map((username) => ({ username }))
    const line = reader.read({ id: 1, version: 0, users }, new Date(0).toISOString(), () => undefined)
    if (!line) throw new Error('the line is read')
    const read: string[] = []
    reader.forEachUser(line, (username) => read.push(username))
    expect(read.sort()).toEqual(['ada', 'bob', 'ａda'])
    const idOf = (username: string) => (username === 'bob' ? 2 : 1)
    expect(reader.resolveUsers(line, idOf)['users']).toEqual([{ id: 1 }, { id: 2 }])
    const apart = (username: string) => ['ada', 'ａda', 'bob'].indexOf(username)
    expect(reader.resolveUsers(line, apart)['users']).toHaveLength(3)
  })

  test('CSV that is not UTF-8 is rejected', async () => {
    const lines = await read(
      Buffer.concat([Buffer.from('id,label\n1,'), Buffer.from([0xff]), Buffer.from('\n')]),
    )
    expect(lines.at(-1)?.error).toBe('is not valid UTF-8; the rest of the file was not read')
  })

  test('an empty CSV file yields no lines', async () => {
    expect(await read('')).toEqual([])
    expect(await read('id,label\n')).toEqual([])
  })
})

test('IdSet contains exactly the ids that were added', () => {
  const [set, known] = [new IdSet(), new Set<number>()]
  let id = 1
  for (let index = 0; index < 50_000; index++) {
    // Adjacent ids, distant ids, and ids beyond 32 bits.
    id = [id + 1, id * 1_048_576, Math.floor(id / 3)][index % 3] ?? 1
    id = (id % Number.MAX_SAFE_INTEGER) + 1
    expect(set.add(id)).toBe(!known.has(id))
    known.add(id)
  }
  expect(set.size).toBe(known.size)
  for (const each of known) expect(set.has(each) && (known.has(each + 1) || !set.has(each + 1))).toBe(true)
})

describe('progress bars', () => {
  const SHOW_CURSOR = '\u001B[?25h'

  /** A terminal that collects what is drawn on it. */
  function fakeTerminal(properties: object) {
    const drawn: string[] = []
    const write = (chunk: Buffer, _: BufferEncoding, done: () => void) => {
      drawn.push(chunk.toString())
      done()
    }
    return { drawn, terminal: Object.assign(new Writable({ write }), properties) }
  }

  test.each([
    ['a pipe', { isTTY: false }],
    ['a terminal of unknown width', { isTTY: true, columns: 0 }],
  ])('nothing is drawn on %s', async (_, properties) => {
    const { drawn, terminal } = fakeTerminal(properties)
    const progress = await createProgressBar(terminal)
    progress.begin('checking', 10)
    progress.advance(5, 1_234)
    progress.end()
    expect(drawn).toEqual([])
  })

  test.each([
    ['a bar with a percentage', 10, /━.* checking 50 % {2}1,234/],
    ['a spinner, if the total is unknown', 0, /checking 1,234/],
  ])('a terminal shows %s, and the cursor again at the end', async (_, total, expected) => {
    vi.useFakeTimers()
    try {
      const { drawn, terminal } = fakeTerminal({ isTTY: true, columns: 80 })
      const listeners = process.listenerCount('exit')
      const progress = new ProgressBar(terminal, await import('@clack/prompts'))
      progress.begin('checking', total)
      progress.advance(5, 1_234)
      vi.advanceTimersByTime(500)
      expect(drawn.join('')).toMatch(expected)
      progress.end()
      expect(drawn.at(-1)).toBe(SHOW_CURSOR)
      expect(process.listenerCount('exit')).toBe(listeners)
    } finally {
      vi.useRealTimers()
    }
  })

  test('an unhandled rejection is not swallowed while a bar is drawn', async () => {
    const listeners = process.listeners('unhandledRejection')
    const { terminal } = fakeTerminal({ isTTY: true, columns: 80 })
    const progress = new ProgressBar(terminal, await import('@clack/prompts'))
    progress.begin('checking', 10)
    expect(process.listeners('unhandledRejection')).toEqual(listeners)
    progress.end()
  })
})
