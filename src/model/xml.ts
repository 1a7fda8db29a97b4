// XML → a plain tree, within limits. What could harm whoever reads it is refused before the parser sees it.
import { XMLParser } from 'fast-xml-parser'

export const MAX_XML_BYTES = 8 * 1024 * 1024
const MAX_DEPTH = 32
const [TEXT, CDATA, ATTRIBUTES] = ['#text', '#cdata', ':@']
const KNOWN_ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{1,20}));/gi
const STRAY_ENTITY = /&(?!(?:#\d{1,7}|#x[\da-f]{1,6}|amp|lt|gt|quot|apos);)/i
/** Names that would reach into the objects of the language itself. */
const HARMFUL = /^(__proto__|prototype|constructor)$/

export interface XmlElement {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: readonly XmlElement[]
  /** All text directly inside, with that of CDATA sections. */
  readonly text: string
  readonly line: number
}

export class XmlFault extends Error {}

/** The root element; what is wrong is thrown as an XmlFault, with its line. */
export function parseXml(source: string): XmlElement {
  const text = source.replace(/^\uFEFF/, '')
  refuseHarm(text)
  const lineOf = lineCounter(text)
  const [root, other] = parse(text).filter((node) => nameOf(node) !== TEXT)
  if (root === undefined) throw new XmlFault('there is no element in it')
  if (other !== undefined) throw new XmlFault('there is more than one root element')
  return elementOf(root, lineOf)
}

type Node = Readonly<Record<string, unknown>>

const parser = new XMLParser({
  ...{ preserveOrder: true, ignoreAttributes: false, attributeNamePrefix: '', trimValues: false },
  ...{ parseTagValue: false, parseAttributeValue: false, processEntities: false, cdataPropName: CDATA },
  ...{ ignoreDeclaration: true, ignorePiTags: true, captureMetaData: true, jPath: false },
  maxNestedTags: MAX_DEPTH,
})
const PLACE = XMLParser.getMetaDataSymbol() as symbol

function parse(text: string): readonly Node[] {
  try {
    // Its validator is to become a package of its own; the parser alone would take malformed text for what it resembles.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    return parser.parse(text, true) as readonly Node[]
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const [, what, line] = /^(.*?)\.?:(\d+):\w+$/s.exec(message) ?? []
    throw new XmlFault(what === undefined ? message : `line ${line ?? ''}: ${what}`)
  }
}

function elementOf(node: Node, lineOf: (offset: number) => number): XmlElement {
  const name = nameOf(node)
  const place = (node as Readonly<Record<symbol, { readonly startIndex?: number } | undefined>>)[PLACE]
  const line = lineOf(place?.startIndex ?? 0)
  const raw = Object.entries((node[ATTRIBUTES] ?? {}) as Readonly<Record<string, string>>)
  const attributes = new Map(raw.map(([key, value]) => [key, decode(value.replace(/[\t\n\r]/g, ' '), line)]))
  const children: XmlElement[] = []
  let text = ''
  for (const child of node[name] as readonly Node[]) {
    const kind = nameOf(child)
    if (kind === TEXT) text += decode(String(child[TEXT]), line)
    else if (kind === CDATA)
      text += (child[CDATA] as readonly Node[]).map((part) => String(part[TEXT])).join('')
    else children.push(elementOf(child, lineOf))
  }
  return { name, attributes, children, text, line }
}

function nameOf(node: Node): string {
  return Object.keys(node).find((key) => key !== ATTRIBUTES) ?? ''
}

function decode(text: string, line: number): string {
  if (!text.includes('&')) return text
  return text.replace(ENTITY, (_, decimal?: string, hex?: string, name?: string) => {
    if (decimal === undefined && hex === undefined) return KNOWN_ENTITIES[name ?? ''] ?? ''
    const point = decimal === undefined ? parseInt(hex ?? '', 16) : Number(decimal)
    if (!isCharacter(point)) throw new XmlFault(`line ${line}: there is no character number ${point}`)
    return String.fromCodePoint(point)
  })
}

/** As XML says: no control characters but white space, no halves of surrogate pairs. */
function isCharacter(point: number): boolean {
  if (point < 0x20) return point === 0x9 || point === 0xa || point === 0xd
  return point <= 0xd7ff || (point >= 0xe000 && point <= 0xfffd) || (point >= 0x10000 && point <= 0x10ffff)
}

/** One pass over the marks, without recursion: declarations, unknown entities, depth, names. */
function refuseHarm(text: string): void {
  if (Buffer.byteLength(text) > MAX_XML_BYTES) throw new XmlFault(`it has more than ${MAX_XML_BYTES} bytes`)
  let depth = 0
  let position = 0
  const fail = (what: string, offset: number) => {
    throw new XmlFault(`line ${text.slice(0, offset).split('\n').length}: ${what}`)
  }
  const skip = (mark: string, from: number) => {
    const end = text.indexOf(mark, from)
    if (end < 0) fail(`"${mark}" is missing`, from)
    return end + mark.length
  }
  for (;;) {
    const start = text.indexOf('<', position)
    refuseEntities(text, position, start < 0 ? text.length : start, fail)
    if (start < 0) return
    if (text.startsWith('<!--', start)) position = skip('-->', start + 4)
    else if (text.startsWith('<![CDATA[', start)) position = skip(']]>', start + 9)
    else if (text.startsWith('<?', start)) position = skip('?>', start + 2)
    else if (text.startsWith('<!', start)) fail('a DOCTYPE, or any other declaration, is refused', start)
    else {
      position = endOfTag(text, start)
      const isEnd = text[start + 1] === '/'
      const isEmpty = text[position - 2] === '/'
      depth += isEnd ? -1 : isEmpty ? 0 : 1
      if (depth > MAX_DEPTH) fail(`elements are nested deeper than ${MAX_DEPTH} levels`, start)
      const tag = text.slice(start + (isEnd ? 2 : 1), position - 1)
      const harmful = namesIn(tag).find((name) => HARMFUL.test(name))
      if (harmful !== undefined) fail(`the name "${harmful}" is refused`, start)
      refuseEntities(text, start, position, fail)
    }
  }
}

/** The names of an element and its attributes. */
function namesIn(tag: string): string[] {
  if (!/__proto__|prototype|constructor/.test(tag)) return []
  return tag.replace(/"[^"]*"|'[^']*'/g, ' ').split(/[\s=/]+/)
}

/** Behind the `>` that is not inside of a quoted value. */
function endOfTag(text: string, start: number): number {
  let quote = ''
  for (let index = start + 1; index < text.length; index++) {
    const mark = text[index] ?? ''
    if (quote !== '') {
      if (mark === quote) quote = ''
    } else if (mark === '"' || mark === "'") quote = mark
    else if (mark === '>') return index + 1
  }
  return text.length
}

function refuseEntities(
  text: string,
  from: number,
  to: number,
  fail: (what: string, offset: number) => void,
): void {
  const segment = text.slice(from, to)
  const stray = segment.includes('&') ? STRAY_ENTITY.exec(segment) : null
  if (stray) fail('only the entities &amp; &lt; &gt; &quot; &apos; and numbers are known', from + stray.index)
}

function lineCounter(text: string): (offset: number) => number {
  const ends = [...text.matchAll(/\n/g)].map((match) => match.index)
  return (offset) => {
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ends[middle] ?? 0) < offset) low = middle + 1
      else high = middle
    }
    return low + 1
  }
}
