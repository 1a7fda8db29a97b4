import { describe, expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import type { FieldDefinition } from '../../src/model/definition/field-definition.js'
import { formatModel } from '../../src/formats/model-file.js'
import { domain, field, read } from './domain.js'

const OPTIONS = `<object-views>
  <form name="a-form"><panel><field name="a"/></panel></form>
  <selection name="state"><option value="1">New</option><option value="2">Old</option></selection>
  <selection name="word"><option value="a">A</option><option value="b"/></selection>
</object-views>`
const STATE = [
  { value: 1, title: 'New' },
  { value: 2, title: 'Old' },
]
const MORE = `
  <entity name="B"><many-to-one name="a" ref="A"/><one-to-one name="one" ref="A"/><many-to-many name="all" ref="A"/></entity>
  <enum name="Color"><item name="RED" title="Red"/><item name="BLUE" value="b"/></enum>
  <sequence name="seq" prefix="S" suffix="/x" padding="4" initial="7" increment="1"/>
  <sequence name="odd" increment="2" padding="20"/>`

const CLEAN: readonly (readonly [xml: string, definition: object])[] = [
  ['<string name="a"/>', { type: 'string' }],
  ['<string name="a" title="T &amp; U" help="H"/>', { type: 'string', title: 'T & U', help: 'H' }],
  ['<string name="a" copy="false"/>', { type: 'string', copy: false }],
  [
    '<one-to-one name="a" ref="B" copy="false"/>',
    { type: 'one-to-one', target: 'org.test.db.B', copy: false },
  ],
  [
    '<string name="a" required="true" unique="true" max="9"/>',
    { type: 'string', required: true, length: 9, unique: true },
  ],
  ['<string name="a" min="2" max="9"/>', { type: 'string', length: { min: 2, max: 9 } }],
  ['<string name="a" min="2"/>', { type: 'string', length: { min: 2 } }],
  ['<string name="a" multiline="true" readonly="true" hidden="true"/>', { type: 'string' }],
  ['<string name="a" large="true"/>', { type: 'text' }],
  ['<string name="a" json="true"/>', { type: 'json' }],
  ['<string name="a" password="true"/>', { type: 'string', secret: true }],
  ['<string name="a" default="x"/>', { type: 'string', default: 'x' }],
  [
    '<string name="a" selection="word"/>',
    {
      type: 'string',
      selection: [
        { value: 'a', title: 'A' },
        { value: 'b', title: 'b' },
      ],
    },
  ],
  [
    '<string name="a" sequence="seq" required="true"/>',
    { type: 'string', sequence: { prefix: 'S', suffix: '/x', padding: 4, next: 7 } },
  ],
  ['<boolean name="a"/>', { type: 'boolean', default: false }],
  ['<boolean name="a" default="true"/>', { type: 'boolean', default: true }],
  ['<boolean name="a" nullable="true"/>', { type: 'boolean' }],
  ['<integer name="a"/>', { type: 'integer', default: 0 }],
  ['<integer name="a" default=""/>', { type: 'integer', default: 0 }],
  ['<integer name="a" required="true"/>', { type: 'integer', required: true }],
  ['<integer name="a" min="1" max="5"/>', { type: 'integer', min: 1, max: 5 }],
  ['<integer name="a" default="3"/>', { type: 'integer', default: 3 }],
  ['<integer name="a" selection="state" default="2"/>', { type: 'integer', selection: STATE, default: 2 }],
  ['<integer name="a" selection="state"/>', { type: 'integer', selection: STATE }],
  ['<long name="a" nullable="true" max="9007199254740991"/>', { type: 'long', max: 9007199254740991 }],
  ['<decimal name="a"/>', { type: 'decimal', default: '0' }],
  [
    '<decimal name="a" precision="20" scale="10" min="0.5"/>',
    { type: 'decimal', precision: 20, scale: 10, min: '0.5' },
  ],
  ['<decimal name="a" default="1.50"/>', { type: 'decimal', default: '1.50' }],
  ['<date name="a" default="now"/>', { type: 'date', default: 'now' }],
  ['<time name="a" default="13:45:00"/>', { type: 'time', default: '13:45:00' }],
  ['<datetime name="a" tz="true"/>', { type: 'datetime' }],
  ['<binary name="a" image="true" required="true" title="T"/>', { type: 'binary', title: 'T' }],
  ['<uuid name="a"/>', { type: 'uuid' }],
  [
    '<enum name="a" ref="Color" default="RED"/>',
    {
      type: 'enum',
      selection: [
        { value: 'RED', title: 'Red' },
        { value: 'BLUE', title: 'BLUE' },
      ],
      default: 'RED',
    },
  ],
  [
    '<many-to-one name="a" ref="B" required="true" unique="true"/>',
    { type: 'many-to-one', target: 'org.test.db.B', required: true, unique: true },
  ],
  ['<many-to-one name="a" ref="org.test.db.B"/>', { type: 'many-to-one', target: 'org.test.db.B' }],
  [
    '<many-to-one name="a" ref="com.axelor.auth.db.User"/>',
    { type: 'many-to-one', target: 'verso.auth.User' },
  ],
  [
    '<many-to-one name="a" ref="com.axelor.meta.db.MetaModel"/>',
    { type: 'many-to-one', target: 'com.axelor.meta.db.MetaModel' },
  ],
  [
    '<one-to-one name="a" ref="B" required="true"/>',
    { type: 'one-to-one', target: 'org.test.db.B', required: true },
  ],
  [
    '<one-to-one name="a" ref="B" mappedBy="one"/>',
    { type: 'one-to-one', target: 'org.test.db.B', mappedBy: 'one' },
  ],
  [
    '<one-to-many name="l" ref="B" mappedBy="a"/>',
    { type: 'one-to-many', target: 'org.test.db.B', mappedBy: 'a', owned: true },
  ],
  [
    '<one-to-many name="l" ref="B" mappedBy="a" orphanRemoval="false"/>',
    { type: 'one-to-many', target: 'org.test.db.B', mappedBy: 'a' },
  ],
  [
    '<one-to-many name="l" ref="B" mappedBy="a" orderBy="-createdOn, one.id ,id,"/>',
    {
      ...{ type: 'one-to-many', target: 'org.test.db.B', mappedBy: 'a', owned: true },
      orderBy: ['-createdOn', 'one.id', 'id'],
    },
  ],
  [
    '<many-to-many name="l" ref="B" orderBy="archived,-createdBy"/>',
    { type: 'many-to-many', target: 'org.test.db.B', orderBy: ['archived', '-createdBy'] },
  ],
  [
    '<many-to-many name="l" ref="com.axelor.auth.db.User" orderBy="name"/>',
    { type: 'many-to-many', target: 'verso.auth.User', orderBy: ['name'] },
  ],
  ['<many-to-many name="l" ref="B" required="true"/>', { type: 'many-to-many', target: 'org.test.db.B' }],
  [
    '<many-to-many name="l" ref="B" mappedBy="all"/>',
    { type: 'many-to-many', target: 'org.test.db.B', mappedBy: 'all' },
  ],
]

describe('fields converted without a report', () => {
  test.each(CLEAN)('%s is converted to the expected definition without a report', (xml, definition) => {
    expect(field(xml, MORE, OPTIONS)).toEqual({ definition, report: [] })
  })

  test.each(CLEAN)('%s is accepted by the catalog', (xml) => {
    const { definitions } = read([domain(`<entity name="A">${xml}</entity>${MORE}`), OPTIONS])
    expect(() => Catalog.from(definitions.map((definition) => ({ file: 'x', definition })))).not.toThrow()
  })
})

const REPORTED: readonly (readonly [
  xml: string,
  definition: FieldDefinition | undefined | object,
  report: string,
])[] = [
  ['<string name="a">return b;</string>', { type: 'string' }, 'computed A.a: stored'],
  [
    '<string name="a" required="true"><![CDATA[ if (1 < 2 && true) return b; ]]></string>',
    { type: 'string' },
    'computed A.a: stored',
  ],
  ['<string name="a" transient="true">return b;</string>', { type: 'json' }, 'computed A.a: transient'],
  ['<string name="a" transient="true"/>', { type: 'json' }, 'transient A.a'],
  ['<integer name="a" formula="true">select 1</integer>', { type: 'json' }, 'formula A.a'],
  ['<string name="a" encrypted="true"/>', { type: 'string' }, 'encrypted A.a'],
  ['<string name="a" translatable="true"/>', { type: 'string' }, 'translatable A.a'],
  ['<integer name="a" default="x"/>', { type: 'integer', default: 0 }, 'default A.a: x'],
  ['<integer name="a" default="9" max="5"/>', { type: 'integer', max: 5, default: 0 }, 'default A.a: 9'],
  ['<datetime name="a" default="yesterday"/>', { type: 'datetime' }, 'default A.a: yesterday'],
  ['<string name="a" json="true" default="{"/>', { type: 'json' }, 'default A.a: {'],
  ['<boolean name="a" default="yes"/>', { type: 'boolean', default: false }, 'default A.a: yes'],
  ['<enum name="a" ref="Color" default="GREEN"/>', { type: 'enum' }, 'default A.a: GREEN'],
  ['<integer name="a" min="9" max="5"/>', { type: 'integer', default: 0 }, 'limit A.a: min 9, max 5'],
  ['<string name="a" max="many"/>', { type: 'string' }, 'limit A.a: max many'],
  [
    '<decimal name="a" precision="60" scale="10"/>',
    { type: 'decimal', precision: 38, scale: 10 },
    'limit A.a: precision 60 and scale 10',
  ],
  [
    '<string name="a" large="true" unique="true"/>',
    { type: 'text' },
    'constraint A.a: text cannot be unique',
  ],
  [
    '<string name="a" password="true" unique="true"/>',
    { type: 'string', secret: true },
    'constraint A.a: a secret cannot be unique',
  ],
  [
    '<integer name="a" selection="word"/>',
    { type: 'integer', default: 0 },
    'selection A.a: word does not match the type integer',
  ],
  [
    '<integer name="a" selection="nowhere"/>',
    { type: 'integer', default: 0 },
    'selection A.a: nowhere is not defined',
  ],
  [
    '<integer name="a" selection="state" default="7"/>',
    { type: 'integer', default: 7 },
    'selection A.a: state does not contain the default',
  ],
  [
    '<string name="a" large="true" selection="word"/>',
    { type: 'text' },
    'selection A.a: word does not match the type text',
  ],
  ['<string name="a" sequence="nowhere"/>', { type: 'string' }, 'sequence A.a: nowhere is not defined'],
  ['<enum name="a" ref="Shape"/>', { type: 'json' }, 'enum A.a: Shape'],
  ['<enum name="a" ref="Colour"/>', { type: 'json' }, 'enum A.a: Colour (did you mean "Color"?)'],
  ['<enum name="a"/>', { type: 'json' }, 'enum A.a: has no ref'],
  ['<many-to-one name="a" ref="Nowhere"/>', { type: 'json' }, 'target A.a: Nowhere'],
  ['<many-to-one name="a" ref="C"/>', { type: 'json' }, 'target A.a: C (did you mean "A"?)'],
  ['<many-to-one name="a" ref="org.x.B"/>', { type: 'json' }, 'target A.a: org.x.B (did you mean "B"?)'],
  ['<many-to-one name="a"/>', { type: 'json' }, 'target A.a: has no ref'],
  [
    '<many-to-one name="a" ref="B" default="1"/>',
    { type: 'many-to-one' },
    'default A.a: a relation cannot have a default',
  ],
  ['<one-to-many name="l" ref="B"/>', { type: 'many-to-many', target: 'org.test.db.B' }, 'unmapped-list A.l'],
  ['<one-to-many name="l" ref="B" mappedBy="b"/>', undefined, 'mapped-by A.l: B has no field "b"'],
  [
    '<one-to-many name="l" ref="B" mappedBy="one"/>',
    undefined,
    'mapped-by A.l: B.one is not a many-to-one with target A',
  ],
  [
    '<one-to-many name="l" ref="B" mappedBy="toString"/>',
    undefined,
    'mapped-by A.l: B has no field "toString"',
  ],
  [
    '<one-to-many name="l" ref="B" mappedBy="a" orderBy="-createdOm,id"/>',
    { type: 'one-to-many', orderBy: ['id'] },
    'order-by A.l: -createdOm: B has no field "createdOm" (did you mean "createdOn"?)',
  ],
  [
    '<many-to-many name="l" ref="B" orderBy="all"/>',
    { type: 'many-to-many', target: 'org.test.db.B' },
    'order-by A.l: all: "all" is a list, and records cannot be sorted by a list',
  ],
  [
    '<many-to-many name="l" ref="B" orderBy="one"/>',
    { type: 'many-to-many', target: 'org.test.db.B' },
    'order-by A.l: one: "one" refers to A, which has no name field to sort by: use one.id',
  ],
  [
    '<many-to-many name="l" ref="B" orderBy="id,id,id,id,id,id,id,id,id"/>',
    { type: 'many-to-many', target: 'org.test.db.B' },
    'order-by A.l: orderBy must have at most 8 keys',
  ],
  ['<string name="createdOn"/>', { type: 'json' }, 'reserved A.createdOn'],
  [
    '<string name="a" requird="true"/>',
    { type: 'string' },
    'attribute A.a: requird (did you mean "required"?) in 1.xml',
  ],
  [
    '<date name="a" Unique="true"/>',
    { type: 'date' },
    'attribute A.a: Unique (did you mean "unique"?) in 1.xml',
  ],
  ['<date name="a" whatsoever=""/>', { type: 'date' }, 'attribute A.a: whatsoever in 1.xml'],
]

test.each(REPORTED)('%s is reported', (xml, definition, line) => {
  const { definition: got, report } = field(xml, MORE, OPTIONS)
  expect(report).toEqual([line])
  if (definition === undefined) expect(got).toBeUndefined()
  else expect(got).toMatchObject(definition)
})

test('a sequence with an increment over 1, or with more than 15 digits, is reported', () => {
  const { definition, report } = field('<string name="a" sequence="odd"/>', MORE)
  expect(definition).toEqual({ type: 'string', sequence: { padding: 15 } })
  expect(report).toEqual([
    'sequence A.a: numbers increase by 1, not by 2',
    'sequence A.a: numbers are padded to 15 digits, not to 20',
  ])
})

test('a sequence used by two fields is reported', () => {
  const { report } = read([
    domain(
      `<entity name="A"><string name="a" sequence="seq"/><string name="b" sequence="seq"/></entity>${MORE}`,
    ),
  ])
  expect(report).toEqual([
    'sequence A.b: seq is also used by another field: here each field has its own counter',
  ])
})

describe('entities', () => {
  const definitionOf = (body: string, attributes = '') => {
    const { definitions, report } = read([domain(`<entity name="A" ${attributes}>${body}</entity>`)])
    return { definition: definitions[0], report }
  }

  test('an entity has a name with its package, an archived flag and a JSON field attrs by default', () => {
    const plain = definitionOf('<string name="a"/>').definition
    expect(plain).toEqual({
      name: 'org.test.db.A',
      fields: { a: { type: 'string' }, attrs: { type: 'json' } },
      archived: true,
    })
    expect(
      Object.keys(definitionOf('<string name="a"/>', 'jsonAttrs="false"').definition?.fields ?? {}),
    ).toEqual(['a'])
    expect(definitionOf('<string name="attrs"/>').definition?.fields).toEqual({ attrs: { type: 'string' } })
    const platform = read([domain('<entity name="Group"><string name="a"/></entity>', 'com.axelor.auth.db')])
    expect(Object.keys(platform.definitions[0]?.fields ?? {})).toEqual(['a'])
  })

  test('an entity without remaining fields is still a model', () => {
    const { definition } = definitionOf('<many-to-one name="a" ref="Nowhere"/>', 'jsonAttrs="false"')
    expect(definition?.fields).toEqual({ attrs: { type: 'json' } })
  })

  test('the name column of an entity becomes its name field, unless it is secret or transient', () => {
    expect(definitionOf('<string name="a"/><string name="b" namecolumn="true"/>').definition).toMatchObject({
      nameField: 'b',
      indexes: [['b']],
    })
    const secret = definitionOf('<string name="b" namecolumn="true" password="true"/>')
    expect(secret.definition).not.toHaveProperty('nameField')
    expect(secret.report).toEqual(['name-field A.b'])
    const gone = definitionOf('<string name="b" namecolumn="true" transient="true">return a;</string>')
    expect(gone.definition).not.toHaveProperty('nameField')
  })

  test('constraints and indexes of an entity name fields or columns', () => {
    const fields =
      '<string name="firstName"/><string name="b" column="b_col"/><integer name="n"/><date name="c" index="true"/>'
    const { definition, report } = definitionOf(
      `${fields}<unique-constraint columns="first_name, b_col" name="u"/><index columns="n DESC,firstName asc"/>` +
        '<index columns="n,c" unique="true"/>',
    )
    expect(definition).toMatchObject({
      unique: [
        ['firstName', 'b'],
        ['n', 'c'],
      ],
      indexes: [['n', 'firstName'], ['c']],
    })
    expect(report).toEqual([])
  })

  test('constraints that cannot be created are dropped and reported', () => {
    const { definition, report } = definitionOf(
      '<string name="a" max="400"/><string name="b" max="400"/><string name="t" large="true"/><binary name="p"/><many-to-one name="gone" ref="Nowhere"/>' +
        '<unique-constraint columns="a,b"/><unique-constraint columns="gone,a"/><index columns="t"/><index columns=""/><index columns="a"/><index columns="p"/>',
    )
    expect(definition).toMatchObject({ indexes: [['a']] })
    expect(definition).not.toHaveProperty('unique')
    expect(report).toEqual([
      'target A.gone: Nowhere',
      'constraint A: a, b: its texts have more than 600 characters in total',
      'constraint A: gone, a: unknown field "gone"',
      'constraint A: t: its texts have more than 600 characters in total',
      'constraint A: : it names no columns',
      'constraint A: p: "p" cannot be indexed',
    ])
  })

  test('Java elements of an entity are reported once', () => {
    const { report } = definitionOf(
      '<string name="a"/><track/><finder-method name="f" using="a"/><finder-method name="g" using="a"/><entity-listener class="x.Y"/>' +
        '<extra-code><![CDATA[ int x = 1; ]]></extra-code><extra-imports/><strange/>',
    )
    expect(report).toEqual(['track A', 'finder A', 'listener A', 'extra-code A', 'element A: <strange>'])
  })

  test('unknown attributes are reported once each, and those for views, Java or XML are not', () => {
    const { report } = read([
      domain(
        '<entity name="Base" persistable="false" xmlns:x="urn:x" x:y="1"><string name="a" requierd="true" orderBy="a" massUpdate="true"/></entity>' +
          '<entity name="A" extends="Base" jsonAttr="false" cacheable="true" repository="none"><string name="b"/></entity>',
      ),
    ])
    expect(report).toEqual([
      'attribute Base.a: requierd (did you mean "required"?) in 1.xml',
      'attribute A: jsonAttr (did you mean "jsonAttrs"?) in 1.xml',
    ])
  })

  test('an entity of the service itself is omitted, and others may refer to it', () => {
    const meta = domain('<entity name="MetaModel"><string name="a"/></entity>', 'com.axelor.meta.db')
    const { definitions, report } = read([
      meta,
      domain('<entity name="A"><many-to-one name="m" ref="com.axelor.meta.db.MetaModel"/></entity>'),
    ])
    expect(definitions.map(({ name }) => name)).toEqual(['org.test.db.A'])
    expect(report).toEqual(['system-model com.axelor.meta.db.MetaModel'])
    expect(definitions[0]?.fields['m']).toEqual({
      type: 'many-to-one',
      target: 'com.axelor.meta.db.MetaModel',
    })
  })

  test('an entity called User is not the account model of the service', () => {
    const user = domain('<entity name="User"><string name="code"/></entity>', 'com.axelor.auth.db')
    const { definitions } = read([
      user,
      domain('<entity name="A"><many-to-one name="u" ref="com.axelor.auth.db.User"/></entity>'),
    ])
    expect(definitions[1]?.fields['u']).toMatchObject({ target: 'com.axelor.auth.db.User' })
  })

  test('the order of a list is kept when a model is printed as TypeScript or JSON', () => {
    const { definition } = definitionOf(
      '<string name="n"/><one-to-many name="l" ref="A" mappedBy="up" orderBy="-n,id"/><many-to-one name="up" ref="A"/>',
    )
    if (!definition) throw new Error('it is not served')
    expect(formatModel(definition, 'ts')).toContain("orderBy: ['-n', 'id']")
    expect(JSON.parse(formatModel(definition, 'json'))).toMatchObject({
      fields: { l: { orderBy: ['-n', 'id'] } },
    })
  })

  test('the second of two owned lists over one reference is not owned, and is reported', () => {
    const { definition, report } = definitionOf(
      '<one-to-many name="l" ref="A" mappedBy="up"/><one-to-many name="m" ref="A" mappedBy="up"/><many-to-one name="up" ref="A"/>',
    )
    expect(definition?.fields).toMatchObject({ l: { owned: true } })
    expect(definition?.fields['m']).not.toHaveProperty('owned')
    expect(report).toEqual(['second-owner A.m: A.up'])
  })
})
