import { describe, expect, test } from 'vitest'
import { MAX_XML_BYTES, parseXml, XmlFault } from '../../src/model/xml.js'

function faultOf(text: string): string {
  try {
    parseXml(text)
  } catch (error) {
    if (error instanceof XmlFault) return error.message
    throw error
  }
  throw new Error('this was to be refused, and was read')
}

test('XML becomes a tree: attributes, text with CDATA, entities, lines', () => {
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

describe('is refused, with the line:', () => {
  test.each([
    ['a DOCTYPE', '\n<!DOCTYPE a><a/>', 'line 2: a DOCTYPE, or any other declaration, is refused'],
    ['a bomb of entities', bomb, 'line 1: a DOCTYPE, or any other declaration, is refused'],
    ['an entity from outside', outside, 'line 1: a DOCTYPE, or any other declaration, is refused'],
    [
      'a declaration inside',
      '<a>\n<!ENTITY x "y"></a>',
      'line 2: a DOCTYPE, or any other declaration, is refused',
    ],
    [
      'an unknown entity',
      '<a>\n\n&x;</a>',
      'line 3: only the entities &amp; &lt; &gt; &quot; &apos; and numbers are known',
    ],
    [
      'one in an attribute',
      '<a b="&nbsp;"/>',
      'line 1: only the entities &amp; &lt; &gt; &quot; &apos; and numbers are known',
    ],
    [
      'a bare &',
      '<a>R & D</a>',
      'line 1: only the entities &amp; &lt; &gt; &quot; &apos; and numbers are known',
    ],
    ['NUL', '<a>&#0;</a>', 'line 1: there is no character number 0'],
    ['half of a surrogate pair', '<a b="&#xD800;"/>', 'line 1: there is no character number 55296'],
    [
      'depth',
      `${'<a>\n'.repeat(33)}${'</a>'.repeat(33)}`,
      'line 33: elements are nested deeper than 32 levels',
    ],
    ['an element called __proto__', '<a>\n<__proto__/></a>', 'line 2: the name "__proto__" is refused'],
    ['an attribute called constructor', '<a constructor="1"/>', 'line 1: the name "constructor" is refused'],
    ['an attribute that is there twice', '<a>\n<b x="1" x="2"/></a>', "line 2: Attribute 'x' is repeated"],
    ['an element that is not closed', '<a>\n<b></a>', /^line 2: Expected closing tag 'b'/],
    ['an attribute without quotes', '<a b=1/>', "line 1: Attribute 'b' is without value"],
    ['an end that is missing', '<a><!-- x', 'line 1: "-->" is missing'],
    ['no element', 'hello', /^line 1: /],
    ['nothing', '', /^line 1: /],
    ['two roots', '<a/><b/>', 'there is more than one root element'],
    ['more than 8 MiB', `<a>${' '.repeat(MAX_XML_BYTES)}</a>`, `it has more than ${MAX_XML_BYTES} bytes`],
  ])('%s', (_, text, fault) => {
    if (typeof fault === 'string') expect(faultOf(text)).toBe(fault)
    else expect(faultOf(text)).toMatch(fault)
  })

  test.each(['<a>', '<a ', '<', '</a>', '<!', '<a b="', '&', '<?', '<![CDATA['])(
    'a million of %s, at once and without an overflow',
    (piece) => {
      expect(faultOf(piece.repeat(1_000_000).slice(0, MAX_XML_BYTES))).not.toBe('')
    },
  )
})
