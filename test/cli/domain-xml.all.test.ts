// Domain XML as model files: loading, report and conversion.
import { copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { loadCatalog, loadModelsWithReport } from '../../src/cli/models/models.js'
import { ConfigError } from '../../src/errors.js'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { MAX_XML_BYTES } from '../../src/formats/domain-xml/xml.js'
import { domain } from '../model/domain.js'
import { cleanUpAfterwards, newDatabase, scratch, start, verso } from './program.js'

cleanUpAfterwards()

const LIBRARY = fileURLToPath(new URL('../../examples/domain-xml', import.meta.url))
const ONE = domain(
  '<entity name="A"><string name="a"/><string name="full" transient="true">return a;</string></entity>',
)
const ALL_KINDS = domain(`
  <enum name="E"><item name="X" title="It's &quot;X&quot;"/><item name="Y"/></enum>
  <sequence name="seq" prefix="S" suffix="'" padding="4" initial="7"/>
  <entity name="A">
    <string name="code" required="true" unique="true" min="2" max="9"/><string name="t" large="true" title="line&#10;line"/>
    <string name="n" sequence="seq"/><string name="p" password="true"/><boolean name="b"/><integer name="i" min="-1" max="5" default="2"/>
    <long name="l" nullable="true"/><decimal name="d" precision="20" scale="3" min="0.5"/><date name="day" default="now"/><time name="hour"/>
    <datetime name="at" tz="true"/><binary name="bin"/><uuid name="u"/><enum name="e" ref="E" default="Y"/><string name="s" selection="sel" default="1"/>
    <many-to-one name="up" ref="A"/><one-to-many name="down" ref="A" mappedBy="up"/><many-to-many name="all" ref="class"/>
    <unique-constraint columns="i,day"/><index columns="day,code"/>
  </entity>
  <entity name="class"><string name="name"/><many-to-many name="back" ref="A" mappedBy="all"/></entity>`)
const VIEWS = '<object-views><selection name="sel"><option value="1">One</option></selection></object-views>'

let folders = 0
function makeFolder(files: Readonly<Record<string, string | Buffer>>): string {
  const root = path.join(scratch, `xml-${++folders}`)
  mkdirSync(root)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
  return root
}

async function faultsOf(folder: string): Promise<string[]> {
  const error: unknown = await loadCatalog(folder).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ConfigError)) throw new Error('the models were not rejected', { cause: error })
  return error.errors.map((fault) => fault.replaceAll(/\S*xml-\d+\//g, ''))
}

const definitionsOf = async (folder: string) =>
  new Map(
    (await loadModelsWithReport(folder)).sources.map(
      ({ definition }) => [(definition as { name: string }).name, definition] as const,
    ),
  )

describe('loading of domain XML', () => {
  test('models in XML, TypeScript and JSON can refer to each other', async () => {
    const root = makeFolder({
      'domains/a.xml': domain('<entity name="A"><many-to-one name="tag" ref="crm.Tag"/></entity>'),
      'tag.json': JSON.stringify({
        name: 'crm.Tag',
        fields: { uses: { type: 'one-to-many', target: 'org.test.db.A', mappedBy: 'tag' } },
      }),
      'pom.xml': '<!DOCTYPE project><project>&nbsp;</project>',
      'data.xml': '<xml-inputs/>',
    })
    const catalog = await loadCatalog(root)
    expect(catalog.models.map(({ name }) => name)).toEqual(['crm.Tag', 'org.test.db.A'])
  })

  test('extendModel extends a model of domain XML, as the example shows', async () => {
    const { sources, report } = await loadModelsWithReport(LIBRARY)
    const catalog = Catalog.from(sources)
    const member = catalog.get('org.example.library.db.Member')
    expect(member.nameField).toBe('fullName')
    expect(member.fields.get('fullName')?.computed?.({ firstName: null, lastName: 'Noether' })).toBe(
      'Noether',
    )
    expect(report.map(({ kind, location }) => `${kind} ${location}`)).toEqual([
      'computed org.example.library.db.Loan.late',
      'track org.example.library.db.Member',
    ])
  })

  test('a computed text that replaces a field keeps its length, so that an index on it stays valid', async () => {
    const root = makeFolder({
      'a.json': JSON.stringify({
        ...{ name: 't.A', indexes: [['a']] },
        fields: { a: { type: 'string', length: 80 }, b: { type: 'string' } },
      }),
      'b.ts': `import { extendModel } from 'verso-records'\nexport const A = extendModel({ name: 't.A', fields: { a: { type: 'string', computed: '{b}!' } } })`,
    })
    expect((await loadCatalog(root)).get('t.A').fields.get('a')).toMatchObject({ maxLength: 80 })
  })

  test('extendModel extends a model of JSON', async () => {
    const root = makeFolder({
      'a.json': JSON.stringify({ name: 't.A', fields: { a: { type: 'string' } } }),
      'b.ts': `import { extendModel } from 'verso-records'\nexport const A = extendModel({ name: 't.A', fields: { b: { type: 'string', computed: '{a}!' } }, nameField: 'b' })`,
    })
    expect((await loadCatalog(root)).get('t.A')).toMatchObject({ nameField: 'b' })
  })
})

describe('errors in domain XML', () => {
  test.each([
    [
      'a DOCTYPE',
      '<!DOCTYPE x [<!ENTITY e "e">]><domain-models/>',
      'a.xml: line 1: a DOCTYPE or other declaration is not allowed',
    ],
    ['malformed XML', '<domain-models>\n<entity</domain-models>', /^a\.xml: line 2: /],
    [
      'a missing package',
      '<domain-models>\n<entity name="A"/></domain-models>',
      'a.xml: line 1: <module name="…" package="…"> must name a valid package',
    ],
    [
      'a reserved name',
      domain('<entity name="A"><string name="constructor"/></entity>'),
      'a.xml: line 4: <string> cannot have the name "constructor": a name must be a letter from A to Z, followed by such letters, digits or _, and not constructor or prototype',
    ],
    [
      'a dangerous name',
      domain('<entity name="__proto__"/>'),
      /^a\.xml: line 4: <entity> cannot have the name "__proto__": a name must be /,
    ],
    [
      'a field declared twice with two types',
      domain('<entity name="A"><string name="a"/>\n<date name="b"/>\n<date name="a"/></entity>'),
      'a.xml: org.test.db.A.a: has type date in line 6, but string in line 4',
    ],
    [
      'another root element',
      '<project/>',
      'a.xml: its root element is <project>, but models need <domain-models> and selections <object-views>',
    ],
    [
      'a file of more than 8 MiB',
      ' '.repeat(MAX_XML_BYTES + 1),
      `a.xml: the file has more than ${MAX_XML_BYTES} bytes`,
    ],
  ])('%s is rejected with file and line', async (_, text, fault) => {
    const [first = ''] = await faultsOf(path.join(makeFolder({ 'a.xml': text }), 'a.xml'))
    if (typeof fault === 'string') expect(first).toBe(fault)
    else expect(first).toMatch(fault)
  })

  test('all errors of several files are reported together', async () => {
    const xml = domain(
      '<entity name="my-entity">\n<string name="é"/>\n<date/><date/></entity>\n<enum name="E"><item name="a b"/></enum>',
    )
    const faults = await faultsOf(makeFolder({ 'a.xml': xml, 'b.xml': domain('<entity name="1"/>') }))
    expect(faults.map((fault) => fault.replace(/: a name must be .*/, ''))).toEqual([
      'a.xml: line 5: <string> cannot have the name "é"',
      'a.xml: line 6: <date> has no name',
      'a.xml: line 6: <date> has no name',
      'a.xml: line 4: <entity> cannot have the name "my-entity"',
      'a.xml: line 7: <item> cannot have the name "a b"',
      'b.xml: line 4: <entity> cannot have the name "1"',
    ])
  })

  test('a field with different types in two files is rejected', async () => {
    const root = makeFolder({
      'a.xml': domain('<entity name="A"><string name="a"/></entity>'),
      'b.xml': domain('<entity name="A"><date name="a"/></entity>'),
    })
    expect(await faultsOf(root)).toEqual([
      expect.stringMatching(/^b\.xml: org\.test\.db\.A\.a: has type date here, but string in .*a\.xml$/),
    ])
  })

  test('an extension of a model that does not exist is rejected', async () => {
    const code = `import { extendModel } from 'verso-records'\nexport const X = extendModel({ name: 'org.test.db.B' })`
    expect(await faultsOf(makeFolder({ 'a.xml': ONE, 'x.ts': code }))).toEqual([
      'x.ts: extends "org.test.db.B" (did you mean "org.test.db.A"?), which is not a model',
    ])
  })

  const swapped = (text: string) => Buffer.from(text, 'utf16le').swap16()
  test.each([
    ['UTF-16LE with a byte order mark', Buffer.from(`\uFEFF${ONE}`, 'utf16le')],
    ['UTF-16BE with a byte order mark', swapped(`\uFEFF${ONE}`)],
    ['UTF-16 without a byte order mark', Buffer.from(ONE, 'utf16le')],
  ])('domain XML in %s is rejected with its file name', async (_, wide) => {
    expect(await faultsOf(makeFolder({ 'a.xml': ONE, 'wide.xml': wide }))).toEqual([
      'wide.xml: the file is not UTF-8; save it as UTF-8',
    ])
  })

  test('bytes that are not UTF-8, and a declared encoding other than UTF-8, are rejected', async () => {
    const latin = Buffer.from(domain('<entity name="B"><string name="b" title="é"/></entity>'), 'latin1')
    const declared = ONE.replace('?>', ' encoding="UTF-16"?>')
    expect(await faultsOf(makeFolder({ 'a.xml': ONE, 'b.xml': latin, 'c.xml': declared }))).toEqual([
      'b.xml: line 4: the file is not valid UTF-8; save it as UTF-8',
      'c.xml: line 1: the encoding of the file is UTF-16; save it as UTF-8',
    ])
  })

  test('XML that is not domain XML may have any encoding', async () => {
    const pom = Buffer.from('\uFEFF<project/>', 'utf16le')
    expect((await loadCatalog(makeFolder({ 'a.xml': ONE, 'pom.xml': pom }))).models).toHaveLength(1)
  })

  test('a folder with only other XML is rejected, and lists the ignored files', async () => {
    expect(await faultsOf(makeFolder({ 'pom.xml': '<project/>' }))).toEqual([
      expect.stringMatching(/: no model was found; to create example models, run: verso init$/),
      'skipped: 1 XML file is not domain XML: pom.xml',
    ])
  })
})

describe('verso models', () => {
  test('models report lists everything in domain XML that is not supported', async () => {
    const { code, stdout } = await verso(['models', 'report', '--models', makeFolder({ 'a.xml': ONE })])
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout:
        '1 model. Not supported:\n\n' +
        '1 field is computed in Java: supply it with extendModel\n  org.test.db.A.full: transient\n',
    })
  })

  test('models report lists ignored files, and serve warns of those that may be models', async () => {
    const folder = makeFolder({
      ...{ 'a.xml': domain('<entity name="A"/>'), 'pom.xml': '<project/>', 'test/a.ts': '', 'b.json': '{' },
      ...{ 'lib/a.js': `throw new Error('it ran')`, 'lib/b.ts': `throw new Error('it ran')` },
    })
    const { code, stdout } = await verso(['models', 'report', '--models', folder])
    expect([code, stdout.replaceAll(`${path.relative(scratch, folder)}/`, '')]).toEqual([
      0,
      '1 model, fully supported.\n\nSkipped:\n\n' +
        '1 folder is not searched\n  test\n\n' +
        '2 scripts are not run: they import none of defineModel, extendModel and defineHooks from "verso-records"\n  lib/a.js\n  lib/b.ts\n\n' +
        "1 file is not JSON\n  b.json: line 1, column 2: Expected property name or '}'\n\n" +
        '1 XML file is not domain XML\n  pom.xml: its root element is <project>\n',
    ])
    const { log } = await start(['serve', '--models', folder, '--port', '0', '--db', newDatabase()])
    expect(log()).toMatch(/"skipped: 2 scripts are not run: .*lib\/a\.js, .*lib\/b\.ts"/)
    expect(log()).toMatch(/"skipped: 1 file is not JSON: .*b\.json"/)
    expect(log()).not.toMatch(/pom\.xml|not searched/)
  })

  test('models report --json lists models, unsupported parts and skipped files', async () => {
    const folder = makeFolder({ 'a.xml': ONE, 'pom.xml': '<project/>' })
    const { code, stdout, stderr } = await verso(['models', 'report', '--json', '--models', folder])
    expect([code, stderr]).toEqual([0, ''])
    const location = path.join(path.relative(scratch, folder), 'pom.xml')
    expect(JSON.parse(stdout)).toEqual({
      models: ['org.test.db.A'],
      unsupported: [{ kind: 'computed', location: 'org.test.db.A.full', detail: 'transient' }],
      skipped: [{ kind: 'xml', location, detail: 'its root element is <project>' }],
    })
    const empty = await verso([...['models', 'report', '--json', '--models'], makeFolder({ '0.js': '' })])
    expect(empty).toMatchObject({ code: 1, stderr: expect.stringContaining('no model was found') })
    expect(JSON.parse(empty.stdout)).toMatchObject({ models: [], skipped: [{ kind: 'script' }] })
  })

  test('models report fails on a folder without models, and lists every ignored file', async () => {
    const files = Array.from({ length: 5 }, (_, index) => [`${index}.js`, ''] as const)
    const folder = makeFolder(Object.fromEntries(files))
    const { code, stdout, stderr } = await verso(['models', 'report', '--models', folder])
    expect(code).toBe(1)
    expect(stderr).toMatch(/no model was found/)
    expect(stdout.match(/^ {2}\S+\/\d\.js$/gm)).toHaveLength(5)
  })

  test.each(['ts', 'json'])('models convert writes %s that loads to the same definitions', async (format) => {
    const folder = makeFolder({ 'a.xml': ALL_KINDS, 'v.xml': VIEWS })
    const out = path.join(scratch, `converted-${format}`)
    const { code, stdout } = await verso(['models', 'convert', folder, '--to', format, '--out', out])
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^wrote 2 models to /) })
    expect(readdirSync(out).sort()).toEqual([`org.test.db.A.${format}`, `org.test.db.class.${format}`])
    expect(await definitionsOf(out)).toEqual(await definitionsOf(folder))
  })

  test('models convert never overwrites a file, and then writes nothing at all', async () => {
    const out = makeFolder({ 'org.test.db.class.json': '{}' })
    const folder = makeFolder({ 'a.xml': ALL_KINDS, 'v.xml': VIEWS })
    const { code, stderr } = await verso(['models', 'convert', folder, '--to', 'json', '--out', out])
    expect(code).toBe(1)
    expect(stderr).toMatch(/Nothing was written:\n {2}- .*org\.test\.db\.class\.json exists already/)
    expect(readdirSync(out)).toEqual(['org.test.db.class.json'])
  })

  test.each([
    ['the folder itself', ''],
    ['a folder inside it', 'out'],
    ['a folder inside it that does not exist yet', 'not/yet'],
  ])('models convert refuses to write into its source folder: %s', async (_, below) => {
    const folder = makeFolder({ 'a.xml': ONE, 'out/b.xml': VIEWS })
    const out = path.join(folder, below)
    const { code, stderr } = await verso(['models', 'convert', folder, '--to', 'ts', '--out', out])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^Nothing was written:\n {2}- .* is inside the source folder/),
    ])
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['a.xml', 'out', 'out/b.xml'])
  })

  test('models convert does not write through a symbolic link into its source folder', async () => {
    const folder = makeFolder({ 'a.xml': ONE })
    const out = path.join(scratch, 'link-to-xml')
    symlinkSync(folder, out)
    const { stderr } = await verso(['models', 'convert', folder, '--to', 'ts', '--out', out])
    expect(stderr).toMatch(/is inside the source folder/)
    expect(readdirSync(folder)).toEqual(['a.xml'])
  })

  test('models convert refuses to write a file that differs from another only in case', async () => {
    const out = makeFolder({ 'org.test.db.a.json': '{}' })
    const folder = makeFolder({ 'a.xml': ONE })
    const { code, stderr } = await verso(['models', 'convert', folder, '--to', 'json', '--out', out])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/org\.test\.db\.a\.json differs from org\.test\.db\.A\.json only in case\n$/),
    ])
    expect(readdirSync(out)).toEqual(['org.test.db.a.json'])
  })

  test.each([
    [
      'names that differ only in case',
      '<entity name="Ab"/><entity name="aB"/>',
      /declares a model of the same name/,
    ],
    ['a name that is too long', `<entity name="${'A'.repeat(300)}"/>`, /The models are invalid/],
  ])('models convert rejects models that serve would reject: %s', async (_, xml, fault) => {
    const folder = makeFolder({ 'a.xml': domain(xml) })
    const out = path.join(scratch, 'refused')
    const { code, stderr } = await verso(['models', 'convert', folder, '--to', 'ts', '--out', out])
    expect([code, stderr]).toEqual([1, expect.stringMatching(fault)])
    expect(stderr).not.toMatch(/\n\s+at /)
    expect(existsSync(out)).toBe(false)
  })

  test.each([
    ['the name is too long', 'o'.repeat(300)],
    ['part of this path is a file, not a folder', 'a-file'],
  ])('models convert reports an unusable output folder without a stack trace: %s', async (error, name) => {
    writeFileSync(path.join(scratch, 'a-file'), '')
    const [folder, out] = [makeFolder({ 'a.xml': ONE }), path.join(scratch, name)]
    const { code, stderr } = await verso(['models', 'convert', folder, '--to', 'ts', '--out', out])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^Nothing was written:\\n {2}- [^\\n]*: ${error}\\n$`)),
    ])
  })

  test('models convert does not convert extensions, and says so', async () => {
    const out = path.join(scratch, 'converted-library')
    const { stdout } = await verso(['models', 'convert', LIBRARY, '--to', 'ts', '--out', out])
    expect(stdout).toMatch(
      /^wrote 4 models to .*\n(.*\n)*copy .*member\.ts to the same folder: it extends the converted models\n$/,
    )
  })

  test('converted models with their extension serve the same models on the same database', async () => {
    const out = path.join(scratch, 'converted-and-extended')
    const db = newDatabase()
    await verso(['models', 'convert', LIBRARY, '--to', 'ts', '--out', out])
    copyFileSync(path.join(LIBRARY, 'member.ts'), path.join(out, 'member.ts'))
    // Functions of two files are never equal; JSON leaves them out.
    const plain = async (folder: string) =>
      JSON.parse(JSON.stringify([...(await definitionsOf(folder))].sort())) as unknown
    expect(await plain(out)).toEqual(await plain(LIBRARY))
    const made = await verso(['schema', '--apply', '--db', db, '--models', LIBRARY])
    expect(made.stdout).toMatch(/^Applied to /)
    const { code, stdout } = await verso(['schema', '--db', db, '--models', out])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^No changes are needed in /) })
  })

  test('models convert rejects a folder without domain XML', async () => {
    const folder = makeFolder({
      'a.json': JSON.stringify({ name: 't.A', fields: { a: { type: 'string' } } }),
    })
    const { code, stderr } = await verso([
      'models',
      'convert',
      folder,
      '--to',
      'ts',
      '--out',
      path.join(scratch, 'none'),
    ])
    expect([code, stderr]).toEqual([1, expect.stringContaining('no domain XML was found')])
  })
})

test('serve logs in one line, once, what it does not support in domain XML', async () => {
  const { log } = await start(['serve', '--port', '0', '--db', newDatabase(), '--models', LIBRARY])
  const lines = log().match(/"msg":"[^"]*"/g) ?? []
  expect(lines.filter((line) => line.includes('computed in Java'))).toEqual([
    '"msg":"1 field is computed in Java: org.example.library.db.Loan.late: supply it with extendModel"',
  ])
})
