// Invalid values of fields, and fields that a model does not have.
import {
  create,
  createBy,
  DONE,
  INVALID,
  row,
  show,
  TAKEN,
  update,
  withBody,
  words,
  type Case,
} from './case.js'

/** Invalid values by field, as JSON text. */
const wrong: Readonly<Record<string, readonly string[]>> = {
  label: [
    ...words`1 0 true {} [] ["x"] "a\u0000b" "\ud800" "x\udc00y" "\ud83d"`,
    JSON.stringify('x'.repeat(256)),
  ],
  note: words`1 false {} [] "\u0000" "\udfff"`,
  whole: words`"1" "" true [] {} 1.5 2147483648 2147483648.0 -2147483649 1e21 1e400`,
  big: words`"1" 1.5 true {} 9007199254740992 9007199254740993 -9007199254740992 1e16 1e400`,
  amount: [
    ...words`"" "1." ".5" "1,5" "1e5" "NaN" "Infinity" "0x10" "１" "--1" "0.12345678901" true [] {} 1e400
      0.1234567890123456789 9007199254740993`,
    ...['" 1"', '"1 "', JSON.stringify('1'.repeat(29))],
  ],
  price: [...words`"1.234" 1.234 "12345678" 12345678 1e21 9007199254740993`, JSON.stringify('1'.repeat(101))],
  active: words`"true" "false" 1 0 "yes" "" [] {}`,
  day: words`"" "today" "2024-02-30" "2023-02-29" "2024-13-01" "2024-00-10" "2024-01-00" "0000-01-01" "24-01-01" "2024-1-1"
    "2024-01-01T00:00:00Z" "20240101" 20240101 "-2024-01-01" "10000-01-01" "2024/01/01" [] {} "null"`,
  at: words`"" "24:00:00" "12:60:00" "12:00:60" "1:00:00" "12" "12:00:00.5" "12:00:00Z" 1200 [] "noon"`,
  moment: words`"" "now" "2024-01-31" "2024-01-31T13:45:00" "2024-01-31T24:00:00Z" "2024-02-30T00:00:00Z" 1706708700000
    "0001-01-01T00:00:00+00:01" "9999-12-31T23:59:59-00:01" "2024-01-31T13:45:00+24:00" "2024-01-31T13:45:00+0100"`,
  token: words`"" "x" 1 "{0b1e2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d}" "0b1e2c3d4e5f4a6b8c7d9e0f1a2b3c4d"
    "0b1e2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4g" "0b1e2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4"`,
  state: [...words`"open" "Draft" "" 0 true ["draft"] {}`, '"draft "'],
  extra: words`"\u0000" "\ud800" {"a\u0000b":1} {"\udc00":1} [[{"x":"\u0000"}]] 1e400 [{"x":-1e400}]`,
}

const everything = (field: string, json: string) =>
  withBody('PUT', '/ws/rest/test.Everything', `{"data":{"${field}":${json}}}`)

const values: readonly Case[] = Object.entries(wrong).flatMap(([field, list]) =>
  list.map((json) =>
    row(`a create with ${field}: ${show(json)}`, everything(field, json), INVALID, { faults: [field] }),
  ),
)

const rightAfterAll: readonly Case[] = [
  row('a create with whole: -0', everything('whole', '-0'), DONE, { says: '"whole":0' }),
  row('a create with big: 2^53-1', everything('big', '9007199254740991'), DONE, {
    says: '"big":9007199254740991',
  }),
  row('a create with amount: 1e-400000', everything('amount', '1e-400000'), DONE, {
    says: '"amount":"0.0000000000"',
  }),
  row('a create with amount: "-0"', everything('amount', '"-0"'), DONE, { says: '"amount":"0.0000000000"' }),
]

const limits: readonly Case[] = [
  ...(
    [
      [{}, ['code']],
      [{ code: null }, ['code']],
      [{ code: '' }, ['code']],
      [{ code: 'x' }, ['code']],
      [{ code: 'abcde' }, ['code']],
      [{ code: 12 }, ['code']],
      [{ code: 'ok', number: 0 }, ['number']],
      [{ code: 'ok', number: 11 }, ['number']],
      [{ code: 'ok', rate: '-1.51' }, ['rate']],
      [{ code: 'ok', rate: 1.51 }, ['rate']],
      [{ code: 'ok', rate: '1.505' }, ['rate']],
      [{ code: 'ok', since: '1999-12-31' }, ['since']],
      [{ code: 'ok', since: '2100-01-01' }, ['since']],
      [{ code: 'ok', level: 4 }, ['level']],
      [{ code: 'ok', level: '1' }, ['level']],
      [{ code: 'ok', country: 'FRA' }, ['country']],
      [{ code: 'ok', madeAt: 'now' }, ['madeAt']],
      [
        { number: 0, rate: 2, since: 'x', level: 9, country: 'xxx' },
        words`code country level number rate since`,
      ],
    ] as const
  ).map(([data, faults]) =>
    row(`a create in test.Limited with ${JSON.stringify(data)}`, create('test.Limited', data), INVALID, {
      faults,
    }),
  ),
  row('a create with a unique code that is taken', create('test.Limited', { code: 'AA' }), TAKEN, {
    faults: ['code'],
  }),
  row(
    'a create with a unique set of fields that is taken',
    create('test.Limited', { code: 'BB', number: 1 }),
    TAKEN,
    {
      faults: words`country number`,
    },
  ),
  row(
    'an update that clears a required field',
    withBody('POST', '/ws/rest/test.Limited/1', '{"data":{"version":0,"code":null,"number":99}}'),
    INVALID,
    { faults: ['code', 'number'] },
  ),
  row('a create without a required title', create('test.Note', {}), INVALID, { faults: ['title'] }),
  row('a create with archived: "half"', create('test.Note', { title: 'x', archived: 'half' }), INVALID, {
    faults: ['archived'],
  }),
]

const everyFault = {
  ...{
    label: 1,
    note: 1,
    whole: 'x',
    big: 1.5,
    amount: 'x',
    price: '1.234',
    active: 'no',
    day: 'x',
    at: 'x',
    moment: 'x',
  },
  ...{ token: 'x', state: 'x', extra: '\0', unknown: 1 },
}
const keptOrComputed = { fullName: 'B', createdOn: 'x', createdBy: 9, updatedOn: [], updatedBy: { id: 9 } }
const ofEveryObject = { constructor: 1, toString: 2, hasOwnProperty: 3, prototype: 4 }
const contact = (data: unknown) => create('crm.Contact', data)
const hint = '(did you mean \\"firstName\\"?)'

const fields: readonly Case[] = [
  row('a create with every field wrong', create('test.Everything', everyFault), INVALID, {
    faults: Object.keys(everyFault).sort(),
  }),
  row('an update with several errors', update({ version: 1, firstName: 1, email: [], nothing: 1 }), INVALID, {
    faults: words`email firstName nothing`,
  }),
  row('a create with an unknown field', contact({ fristName: 'x' }), INVALID, {
    faults: ['fristName'],
    says: hint,
  }),
  row('a create with a field in upper case', contact({ FIRSTNAME: 'x' }), INVALID, {
    faults: ['FIRSTNAME'],
    says: hint,
  }),
  row('a create with a field of another model', contact({ whole: 1 }), INVALID, { faults: ['whole'] }),
  row('a create with a field without a name', contact({ '': 1 }), INVALID, { faults: [''] }),
  row('a create with fields named like properties of every object', contact(ofEveryObject), INVALID, {
    faults: Object.keys(ofEveryObject).sort(),
  }),
  row('a create with a constructor without a prototype', contact({ constructor: {} }), INVALID, {
    faults: ['constructor'],
  }),
  row('a create with SQL as the name of a field', contact({ 'x" = 1; --': 1, "firstName'": 1 }), INVALID, {
    faults: [`firstName'`, 'x" = 1; --'],
  }),
  row('a create with NUL in the name of a field', contact({ 'first\0Name': 'x' }), INVALID, {
    faults: ['first\0Name'],
  }),
  row('a create with half of a surrogate pair in the name of a field', contact({ '\ud800': 1 }), INVALID, {
    faults: ['\ud800'],
  }),
  row(
    'a create with columns that are no fields',
    contact({ rowid: 1, oid: 2, ctid: 3, $version: 4 }),
    INVALID,
    {
      faults: words`$version ctid oid rowid`,
    },
  ),
  row('a create with a path as the name of a field', contact({ 'createdBy.name': 'x' }), INVALID, {
    faults: ['createdBy.name'],
  }),
  row('a create with a secret that is no text', contact({ pin: 1, password: {} }), INVALID, {
    faults: ['password', 'pin'],
  }),
  row(
    'a create with a key twice, the last one wrong',
    createBy('{"data":{"email":"x","email":1}}'),
    INVALID,
    {
      faults: ['email'],
    },
  ),
  row('a create with a key twice, the last one right', createBy('{"data":{"email":1,"email":"x"}}'), DONE, {
    says: '"email":"x"',
  }),
  row(
    'a create with system fields and computed fields',
    contact({ firstName: 'A', ...keptOrComputed }),
    DONE,
    {
      says: '"fullName":"A"',
    },
  ),
]

export const fieldValues: readonly Case[] = [...[values, rightAfterAll, limits, fields].flat()]
