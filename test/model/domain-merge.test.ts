import { describe, expect, test } from 'vitest'
import { domain, read } from './domain.js'

const entity = (body: string, attributes = '') =>
  domain(`<entity name="A" jsonAttrs="false" ${attributes}>${body}</entity>`)

describe('fields declared twice in one entity', () => {
  test('a repeated field has the attributes of the later declaration, and is reported', () => {
    const { definitions, report, faults } = read([
      entity(
        '<long name="hours" title="Hours" nullable="true" massUpdate="true"/>\n' +
          '<string name="a" title="A" max="20"/>\n' +
          '<long name="hours" title="Hours" nullable="true" massUpdate="true"/>\n' +
          '<string name="a" title="Aye" required="true"/>',
      ),
    ])
    expect(definitions[0]?.fields).toEqual({
      hours: { type: 'long', title: 'Hours' },
      a: { type: 'string', title: 'Aye', required: true, length: 20 },
    })
    expect(Object.keys(definitions[0]?.fields ?? {})).toEqual(['hours', 'a'])
    expect({ report, faults }).toEqual({
      report: ['repeated A.hours: lines 4 and 6 of 1.xml', 'repeated A.a: lines 5 and 7 of 1.xml'],
      faults: [],
    })
  })

  test('a mutant that keeps only the first or only the last declaration is caught', () => {
    const [first, last] = [
      '<string name="a" title="A" max="20"/>',
      '<string name="a" title="Aye" required="true"/>',
    ]
    const fieldOf = (xml: string) => read([entity(xml)]).definitions[0]?.fields['a']
    const merged = fieldOf(first + last)
    expect(merged).toEqual({ type: 'string', title: 'Aye', required: true, length: 20 })
    expect(fieldOf(first)).not.toEqual(merged)
    expect(fieldOf(last)).not.toEqual(merged)
  })

  test('a repeated field merges like fields of several files: fixed attributes stay, and both are reported', () => {
    const { definitions, report } = read([
      entity('<string name="a" large="true"/><string name="a" large="false" column="b"/>'),
    ])
    expect(definitions[0]?.fields).toEqual({ a: { type: 'text' } })
    expect(report).toEqual([
      'repeated A.a: lines 4 and 4 of 1.xml',
      'override A.a: large in 1.xml',
      'override A.a: column in 1.xml',
    ])
  })

  test('a field repeated three times in one file and again in another is merged and reported', () => {
    const { definitions, report } = read([
      entity('<integer name="a" nullable="true"/>'),
      entity(['Two', 'Three', 'Four'].map((title) => `<integer name="a" title="${title}"/>`).join('\n')),
    ])
    expect(definitions[0]?.fields).toEqual({ a: { type: 'integer', title: 'Four' } })
    expect(report).toEqual(['repeated A.a: lines 4 and 5 of 2.xml', 'repeated A.a: lines 4 and 6 of 2.xml'])
  })

  test('a field repeated with another type is an error with both lines', () => {
    const { faults } = read([entity('<string name="a"/>\n<date name="b"/>\n<date name="a"/>')])
    expect(faults).toEqual(['1.xml: A.a: has type date in line 6, but string in line 4'])
  })

  test('repeated constraints and indexes are created once, and repeated items of an enum are merged', () => {
    const twice = (xml: string) => xml + xml
    const { definitions, report } = read([
      domain(
        `<entity name="A" jsonAttrs="false"><string name="a"/><date name="b"/><enum name="e" ref="E"/>${twice(
          '<unique-constraint columns="a,b"/><index columns="b,a"/><finder-method name="f" using="a"/>',
        )}</entity><enum name="E"><item name="X" title="1"/><item name="Y"/>\n<item name="X" title="2"/></enum>`,
      ),
    ])
    expect(definitions[0]).toMatchObject({ unique: [['a', 'b']], indexes: [['b', 'a']] })
    expect(definitions[0]?.fields['e']).toEqual({
      type: 'enum',
      selection: [
        { value: 'X', title: '2' },
        { value: 'Y', title: 'Y' },
      ],
    })
    expect(report).toEqual(['repeated E.X: lines 4 and 5 of 1.xml', 'finder A'])
  })
})

describe('an entity in several files', () => {
  test('an entity in several files has the fields and constraints of all, in file order', () => {
    const { definitions, report, faults } = read([
      entity('<string name="a"/><string name="b" title="B"/>'),
      entity(
        '<string name="c"/><string name="b" title="Bee" required="true"/><unique-constraint columns="a,c"/>',
      ),
      entity('<integer name="d" nullable="true"/><track/>'),
    ])
    expect(definitions).toEqual([
      {
        name: 'org.test.db.A',
        fields: {
          a: { type: 'string' },
          b: { type: 'string', title: 'Bee', required: true },
          c: { type: 'string' },
          d: { type: 'integer' },
        },
        unique: [['a', 'c']],
        archived: true,
      },
    ])
    expect({ report, faults }).toEqual({ report: ['track A'], faults: [] })
  })

  test('a field with two types is an error that names both files', () => {
    const { faults } = read([entity('<string name="a"/>'), entity('<integer name="a"/>')])
    expect(faults).toEqual(['2.xml: A.a: has type integer here, but string in 1.xml'])
  })

  test.each([
    [
      '<string name="a" json="true"/>',
      '<string name="a" json="false"/>',
      { type: 'json' },
      ['override A.a: json in 2.xml'],
    ],
    [
      '<string name="a" large="true"/>',
      '<string name="a" large="false"/>',
      { type: 'text' },
      ['override A.a: large in 2.xml'],
    ],
    ['<string name="a"/>', '<string name="a" large="true"/>', { type: 'text' }, []],
    [
      '<string name="a"/>',
      '<string name="a" transient="true"/>',
      { type: 'string' },
      ['override A.a: transient in 2.xml'],
    ],
    ['<string name="a" required="true"/>', '<string name="a" required="false"/>', { type: 'string' }, []],
    [
      '<many-to-one name="a" ref="A"/>',
      '<many-to-one name="a" ref="B" title="T"/>',
      { type: 'many-to-one', target: 'org.test.db.A', title: 'T' },
      ['override A.a: ref in 2.xml'],
    ],
    [
      '<many-to-one name="a" ref="A"/>',
      '<many-to-one name="a" ref="org.test.db.A"/>',
      { type: 'many-to-one', target: 'org.test.db.A' },
      [],
    ],
  ])('the field %s followed by %s is merged as expected', (first, second, definition, report) => {
    const result = read([entity(first), entity(second)])
    expect(result.definitions[0]?.fields['a']).toEqual(definition)
    expect(result.report).toEqual(report)
  })

  test('enums and selections in several files are merged', () => {
    const { definitions } = read([
      domain(
        '<enum name="E"><item name="X"/></enum><entity name="A"><enum name="e" ref="E"/><string name="s" selection="s"/></entity>',
      ),
      domain('<enum name="E"><item name="Y" title="Why"/></enum>'),
      '<object-views><selection name="s"><option value="1">One</option></selection></object-views>',
      '<object-views><selection name="s"><option value="2">Two</option><option value="1">Uno</option></selection></object-views>',
    ])
    expect(definitions[0]?.fields).toMatchObject({
      e: { selection: [{ value: 'X' }, { value: 'Y', title: 'Why' }] },
      s: { selection: [{ value: '1', title: 'Uno' }, { value: '2' }] },
    })
  })
})

describe('entity inheritance', () => {
  test('an entity inherits the fields of its parent, also of one that is not persistable', () => {
    const { definitions, report } = read([
      domain(
        '<entity name="Base" persistable="false"><string name="code"/><many-to-one name="near" ref="Other"/></entity><entity name="Other"><string name="x"/></entity>',
        'org.base.db',
      ),
      domain(
        '<entity name="A" jsonAttrs="false" extends="org.base.db.Base"><string name="code" title="C"/><string name="own"/></entity>',
      ),
    ])
    expect(definitions.map(({ name }) => name)).toEqual(['org.base.db.Other', 'org.test.db.A'])
    expect(definitions[1]?.fields).toEqual({
      code: { type: 'string', title: 'C' },
      near: { type: 'many-to-one', target: 'org.base.db.Other' },
      own: { type: 'string' },
    })
    expect(report).toEqual([])
  })

  test('an entity does not inherit lists that refer to its parent, and they are reported', () => {
    const { definitions, report } = read([
      domain(
        '<entity name="P"><one-to-many name="lines" ref="L" mappedBy="p"/></entity><entity name="L"><many-to-one name="p" ref="P"/></entity>' +
          '<entity name="C" extends="P"><string name="own"/></entity>',
      ),
    ])
    expect(definitions[0]?.fields).toHaveProperty('lines')
    expect(definitions[2]?.fields).not.toHaveProperty('lines')
    expect(report).toEqual([
      'strategy C: it extends P',
      'mapped-by C.lines: L.p is not a many-to-one with target C',
    ])
  })

  test('an unknown parent of an entity is reported', () => {
    const { definitions, report } = read([entity('<string name="a"/>', 'extends="Nowhere"')])
    expect(Object.keys(definitions[0]?.fields ?? {})).toEqual(['a'])
    expect(report).toEqual(['parent A: Nowhere'])
    const near = domain('<entity name="Bass"><string name="b"/></entity><entity name="C" extends="Base"/>')
    expect(read([near]).report).toEqual(['parent C: Base (did you mean "Bass"?)'])
  })

  test('a cycle of entities that extend each other is an error', () => {
    const { faults } = read([
      domain(
        '<entity name="A" extends="B"><string name="a"/></entity><entity name="B" extends="A"><string name="b"/></entity>',
      ),
    ])
    expect(faults).toEqual(['1.xml: B: it extends itself through A and B'])
  })

  test('a chain of more than 100 entities that extend each other is an error, not a stack overflow', () => {
    const many = Array.from(
      { length: 1_000 },
      (_, index) => `<entity name="E${index}" extends="E${index + 1}"><string name="a"/></entity>`,
    )
    expect(read([domain(many.join(''))]).faults).toContain(
      '1.xml: E100: its inheritance has more than 100 levels',
    )
  })
})

test('extensions supply computed fields, and computed fields without an extension are reported', () => {
  const xml = entity(
    '<string name="full" namecolumn="true" transient="true">return a;</string><string name="a"/><string name="b">return a;</string>',
  )
  const full = { type: 'string', computed: '{a}' } as const
  const extension = {
    name: 'org.test.db.A',
    fields: { full, more: { type: 'text' } },
    listFields: ['full'],
  } as const
  const { definitions, report } = read([xml], {
    extensions: new Map([[extension.name, [extension]]]),
    others: new Map(),
  })
  expect(definitions).toEqual([
    {
      name: 'org.test.db.A',
      fields: { full, a: { type: 'string' }, b: { type: 'string' }, more: { type: 'text' } },
      nameField: 'full',
      listFields: ['full'],
      archived: true,
    },
  ])
  expect(report).toEqual(['computed A.b: stored'])
})

test('a computed text of an extension keeps the length and the index of the field it replaces', () => {
  const xml = entity('<string name="full" namecolumn="true" max="80">return a;</string><string name="a"/>')
  const full = { type: 'string', computed: '{a}' } as const
  const extension = { name: 'org.test.db.A', fields: { full } }
  const { definitions, report } = read([xml], {
    extensions: new Map([[extension.name, [extension]]]),
    others: new Map(),
  })
  expect(definitions[0]).toMatchObject({ fields: { full: { ...full, length: 80 } }, indexes: [['full']] })
  expect(report).toEqual([])
})

test('an entity may refer to models of other files', () => {
  const other = { back: { type: 'many-to-one', target: 'org.test.db.A' } } as const
  const { definitions, report } = read([entity('<one-to-many name="l" ref="crm.Other" mappedBy="back"/>')], {
    extensions: new Map(),
    others: new Map([['crm.Other', other]]),
  })
  expect(definitions[0]?.fields['l']).toMatchObject({ target: 'crm.Other', owned: true })
  expect(report).toEqual([])
})
