import fc from 'fast-check'
import { XMLParser } from 'fast-xml-parser'
import { describe, expect, test } from 'vitest'
import { MAX_XML_BYTES, parseXml, XmlError, type XmlElement } from '../../src/formats/domain-xml/xml.js'

function faultOf(text: string): string {
  try {
    parseXml(text)
  } catch (error) {
    if (error instanceof XmlError) return error.message
    throw error
  }
  throw new Error('the text was expected to be rejected, and was read')
}

test('XML is parsed to a tree with attributes, text with CDATA, entities and lines', () => {
  const root = parseXml(
    '\uFEFF<?xml version="1.0"?>\r\n<!-- <x> & --><a x="1 &amp; &#x41;&#66;" y=\'"\'>\r\n  <b z="p > q"/>one &lt;<![CDATA[ & <c> &amp; ]]></a>\n',
  )
  expect(Object.fromEntries(root.attributes)).toEqual({ x: '1 & AB', y: '"' })
  expect(root.children.map(({ name, line, attributes }) => [name, line, attributes.get('z')])).toEqual([
    ['b', 3, 'p > q'],
  ])
  expect(root.text.trim()).toBe('one < & <c> &amp;')
  expect(root.line).toBe(2)
})

const bomb = `<!DOCTYPE a [<!ENTITY a "${'ha'.repeat(100)}"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;</a>`
const outside = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'

describe('rejected XML', () => {
  test.each([
    ['a DOCTYPE', '\n<!DOCTYPE a><a/>', 'line 2: a DOCTYPE or other declaration is not allowed'],
    ['an entity bomb', bomb, 'line 1: a DOCTYPE or other declaration is not allowed'],
    ['an external entity', outside, 'line 1: a DOCTYPE or other declaration is not allowed'],
    [
      'a declaration inside',
      '<a>\n<!ENTITY x "y"></a>',
      'line 2: a DOCTYPE or other declaration is not allowed',
    ],
    [
      'an unknown entity',
      '<a>\n\n&x;</a>',
      'line 3: unknown entity: only &amp; &lt; &gt; &quot; &apos; and character numbers are supported',
    ],
    [
      'an unknown entity in an attribute',
      '<a b="&nbsp;"/>',
      'line 1: unknown entity: only &amp; &lt; &gt; &quot; &apos; and character numbers are supported',
    ],
    [
      'a bare &',
      '<a>R & D</a>',
      'line 1: unknown entity: only &amp; &lt; &gt; &quot; &apos; and character numbers are supported',
    ],
    ['NUL', '<a>&#0;</a>', 'line 1: character number 0 is not valid'],
    ['half of a surrogate pair', '<a b="&#xD800;"/>', 'line 1: character number 55296 is not valid'],
    [
      '33 levels',
      `${'<a>\n'.repeat(33)}${'</a>'.repeat(33)}`,
      'line 33: elements are nested deeper than 32 levels',
    ],
    ['an element called __proto__', '<a>\n<__proto__/></a>', 'line 2: the name "__proto__" is not allowed'],
    [
      'an attribute called constructor',
      '<a constructor="1"/>',
      'line 1: the name "constructor" is not allowed',
    ],
    [
      'an attribute that is there twice',
      '<a>\n<b x="1" x="2"/></a>',
      'line 2: the attribute "x" occurs twice',
    ],
    ['an element that is not closed', '<a>\n<b></a>', 'line 2: unexpected </a>: <b> in line 2 is still open'],
    [
      'an attribute without quotes',
      '<a b=1/>',
      'line 1: an attribute of <a> is malformed, or ">" is missing',
    ],
    ['an end that is missing', '<a><!-- x', 'line 1: "-->" is missing'],
    ['text only', 'hello', 'line 1: text outside the root element'],
    ['text behind the root', '<a/>\nx', 'line 2: text outside the root element'],
    ['an end without a beginning', '</a>', 'line 1: unexpected </a>'],
    ['an element that is open at the end', '\n<a>\n', 'line 2: <a> is not closed'],
    ['< in an attribute', '<a b="<"/>', 'line 1: an attribute of <a> is malformed, or ">" is missing'],
    [
      'attributes without a space',
      '<a b="1"c="2"/>',
      'line 1: an attribute of <a> is malformed, or ">" is missing',
    ],
    ['a stray <', '<a>1 < 2</a>', 'line 1: "<" does not begin an element: write the character as &lt;'],
    ['a control character', '<a>\n\u0001</a>', 'line 2: control characters are not allowed'],
    [
      'another encoding',
      '<?xml version="1.0" encoding="ISO-8859-1"?><a/>',
      'line 1: the encoding of the file is ISO-8859-1; save it as UTF-8',
    ],
    ['bytes that are not UTF-8', '<a>\uFFFD</a>', 'line 1: the file is not valid UTF-8; save it as UTF-8'],
    ['an empty text', '', 'line 1: the file has no root element'],
    ['two roots', '<a/>\n<b/>', 'line 2: there is more than one root element'],
    [
      'more than 8 MiB',
      `<a>${' '.repeat(MAX_XML_BYTES)}</a>`,
      `the file has more than ${MAX_XML_BYTES} bytes`,
    ],
  ])('XML is rejected with the line: %s', (_, text, fault) => {
    expect(faultOf(text)).toBe(fault)
  })

  test.each(['<a>', '<a ', '<', '</a>', '<!', '<a b="', '&', '<?', '<![CDATA['])(
    'a million of %s are rejected without a stack overflow',
    (piece) => {
      expect(faultOf(piece.repeat(1_000_000).slice(0, MAX_XML_BYTES))).not.toBe('')
    },
  )
})

test('a lenient parser accepts XML that parseXml rejects', () => {
  const harmful = [
    bomb,
    '<a>&x;</a>',
    '<a b="&nbsp;"/>',
    '<a>&#0;</a>',
    `${'<a>'.repeat(33)}${'</a>'.repeat(33)}`,
    '<a/><b/>',
  ]
  for (const text of harmful) {
    expect(() => other.parse(text) as unknown).not.toThrow()
    expect(faultOf(text)).not.toBe('')
  }
})

/** Parses XML to the same shape, without lines. */
const other = new XMLParser({
  ...{ preserveOrder: true, ignoreAttributes: false, attributeNamePrefix: '', trimValues: false },
  ...{ parseTagValue: false, parseAttributeValue: false, processEntities: false, ignorePiTags: true },
})

type Node = Readonly<Record<string, unknown>>
type Shape = readonly [name: string, attributes: object, text: string, children: readonly Shape[]]

function shapeOfNode(node: Node): Shape {
  const name = Object.keys(node).find((key) => key !== ':@') ?? ''
  const inside = node[name] as readonly Node[]
  const text = inside.map((child) => (child['#text'] as string | undefined) ?? '').join('')
  const children = inside.filter((child) => child['#text'] === undefined).map(shapeOfNode)
  return [name, node[':@'] ?? {}, text, children]
}

function shapeOf({ name, attributes, text, children }: XmlElement): Shape {
  return [name, Object.fromEntries(attributes), text, children.map(shapeOf)]
}

test('any document is parsed as by another parser', () => {
  const word = fc.stringMatching(/^[a-z]{1,3}$/)
  const text = fc.stringMatching(/^[ \n]?[\p{L}"'>/=\]-]{1,5}$/u)
  const { element } = fc.letrec<{ element: string }>((tie) => ({
    element: fc
      .tuple(
        word,
        fc.dictionary(word, fc.stringMatching(/^[\p{L}>/= ']{0,5}$/u), { maxKeys: 3 }),
        fc.array(
          fc.oneof(
            { depthSize: 'small' },
            text,
            text.map((body) => `<![CDATA[<${body.replaceAll(']', '')}]]>`),
            text.map((body) => `<!-- <${body.replaceAll('-', '')} -->`),
            fc.constant('<?note x="1"?>'),
            tie('element'),
          ),
          { maxLength: 4 },
        ),
      )
      .map(([name, attributes, inside]) => {
        const printed = Object.entries(attributes).map(([key, value]) => ` ${key} = "${value}"`)
        return inside.length === 0
          ? `<${name}${printed.join('')}/>`
          : `<${name}${printed.join('')}>${inside.join('')}</${name}>`
      }),
  }))
  fc.assert(
    fc.property(element, (document) => {
      const [root] = other.parse(document) as readonly [Node]
      expect(shapeOf(parseXml(document))).toEqual(shapeOfNode(root))
    }),
    { numRuns: 500 },
  )
})
