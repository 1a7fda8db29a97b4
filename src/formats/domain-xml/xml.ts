// Parses XML into a plain tree in one pass, within limits. Strict: rejects everything that is ambiguous or could be an attack.

export const MAX_XML_BYTES = 8 * 1024 * 1024
const MAX_XML_DEPTH = 32
const XML_NAME = '[A-Za-z_\\u0080-\\uFFFF][\\w.:\\-\\u0080-\\uFFFF]*'
const START_TAG = new RegExp(`<(${XML_NAME})`, 'y')
const ATTRIBUTE = new RegExp(`\\s+(${XML_NAME})\\s*=\\s*(?:"([^"<]*)"|'([^'<]*)')`, 'y')
const START_TAG_END = /\s*(\/?)>/y
const END_TAG = new RegExp(`</(${XML_NAME})\\s*>`, 'y')
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ...([
    ['amp', '&'],
    ['lt', '<'],
    ['gt', '>'],
    ['quot', '"'],
    ['apos', "'"],
  ] as const),
])
const ENTITY = /&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(\w{1,20}));|&/g
/** Names that could modify JavaScript prototypes. */
const FORBIDDEN_NAMES = new Set(['__proto__', 'prototype', 'constructor'])
const ENCODING = /^<\?xml[^?]*encoding\s*=\s*["'](?!utf-?8["']|us-ascii["'])([^"']*)/i

export interface XmlElement {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: readonly XmlElement[]
  /** The text directly inside the element, including CDATA sections. */
  readonly text: string
  readonly line: number
}

export class XmlError extends Error {}

/** Returns the root element. Throws an XmlError with the line of the first error. */
export function parseXml(source: string): XmlElement {
  if (Buffer.byteLength(source) > MAX_XML_BYTES)
    throw new XmlError(`the file has more than ${MAX_XML_BYTES} bytes`)
  return new XmlReader(source.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n')).read()
}

interface OpenElement extends XmlElement {
  readonly attributes: Map<string, string>
  readonly children: XmlElement[]
  text: string
}

/** Keeps open elements in a list instead of recursing, so that deep nesting cannot overflow the stack. */
class XmlReader {
  #position = 0
  #line = 1
  #lineOffset = 0
  readonly #open: OpenElement[] = []
  #root: XmlElement | undefined

  constructor(private readonly text: string) {}

  read(): XmlElement {
    this.#checkCharacters()
    for (;;) {
      const start = this.text.indexOf('<', this.#position)
      this.#readText(start < 0 ? this.text.length : start)
      if (start < 0) break
      if (!this.#skipMarkup()) this.#readTag()
    }
    const last = this.#open.at(-1)
    if (last) throw new XmlError(`line ${last.line}: <${last.name}> is not closed`)
    return this.#root ?? this.#fail('the file has no root element')
  }

  #checkCharacters(): void {
    const encoding = ENCODING.exec(this.text)?.[1]
    if (encoding !== undefined) this.#fail(`the encoding of the file is ${encoding}; save it as UTF-8`)
    // The UTF-8 decoder replaces invalid bytes with this character.
    this.#position = this.text.indexOf('\uFFFD')
    if (this.#position >= 0) this.#fail('the file is not valid UTF-8; save it as UTF-8')
    this.#position = this.text.search(/[^\t\n\r -\uFFFD]/)
    if (this.#position >= 0) this.#fail('control characters are not allowed')
    this.#position = 0
  }

  /** Skips comments and processing instructions, and reads CDATA sections. Rejects all declarations. */
  #skipMarkup(): boolean {
    const { text } = this
    if (text.startsWith('<?', this.#position)) this.#skip('<?', '?>')
    else if (text.startsWith('<!--', this.#position)) this.#skip('<!--', '-->')
    else if (text.startsWith('<![CDATA[', this.#position)) {
      const current = this.#open.at(-1) ?? this.#fail('text outside the root element')
      current.text += this.#skip('<![CDATA[', ']]>')
    } else if (text.startsWith('<!', this.#position))
      this.#fail('a DOCTYPE or other declaration is not allowed')
    else return false
    return true
  }

  #skip(from: string, to: string): string {
    const begin = this.#position + from.length
    const end = this.text.indexOf(to, begin)
    if (end < 0) this.#fail(`"${to}" is missing`)
    this.#position = end + to.length
    return this.text.slice(begin, end)
  }

  #readText(end: number): void {
    const text = this.text.slice(this.#position, end)
    const current = this.#open.at(-1)
    if (current) current.text += this.#decode(text)
    else if (text.trim() !== '') {
      this.#position += text.search(/\S/)
      this.#fail('text outside the root element')
    }
    this.#position = end
  }

  #readTag(): void {
    const end = this.#match(END_TAG)
    if (end) this.#close(end[1] ?? '')
    else this.#openElement()
  }

  #close(name: string): void {
    const current = this.#open.pop()
    if (current?.name !== name) {
      const opened = current ? `: <${current.name}> in line ${current.line} is still open` : ''
      this.#fail(`unexpected </${name}>${opened}`)
    }
  }

  #openElement(): void {
    const line = this.#currentLine()
    const name =
      this.#match(START_TAG)?.[1] ?? this.#fail('"<" does not begin an element: write the character as &lt;')
    this.#checkName(name)
    const attributes = new Map<string, string>()
    for (let found = this.#match(ATTRIBUTE); found; found = this.#match(ATTRIBUTE)) {
      const [, key = '', double, single] = found
      this.#checkName(key)
      if (attributes.has(key)) this.#fail(`the attribute "${key}" occurs twice`)
      attributes.set(key, this.#decode((double ?? single ?? '').replace(/[\t\n]/g, ' ')))
    }
    const closing =
      this.#match(START_TAG_END)?.[1] ??
      this.#fail(`an attribute of <${name}> is malformed, or ">" is missing`)
    const element: OpenElement = { name, attributes, children: [], text: '', line }
    const parent = this.#open.at(-1)
    if (parent) parent.children.push(element)
    else if (this.#root) this.#fail('there is more than one root element')
    else this.#root = element
    if (closing === '/') return
    if (this.#open.length >= MAX_XML_DEPTH)
      this.#fail(`elements are nested deeper than ${MAX_XML_DEPTH} levels`)
    this.#open.push(element)
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#position
    const found = pattern.exec(this.text)
    if (found) this.#position = pattern.lastIndex
    return found
  }

  #checkName(name: string): void {
    if (FORBIDDEN_NAMES.has(name)) this.#fail(`the name "${name}" is not allowed`)
  }

  #decode(text: string): string {
    if (!text.includes('&')) return text
    let decoded = ''
    let end = 0
    for (const match of text.matchAll(ENTITY)) {
      decoded += text.slice(end, match.index) + this.#decodeEntity(match)
      end = match.index + match[0].length
    }
    return decoded + text.slice(end)
  }

  #decodeEntity({ index, 1: decimal, 2: hex = '', 3: name = '' }: RegExpExecArray): string {
    const point = decimal === undefined ? parseInt(hex, 16) : Number(decimal)
    const character = Number.isNaN(point) ? ENTITIES.get(name) : toCharacter(point)
    if (character !== undefined) return character
    // Moves to the entity for the line of the error. For an attribute, this is the line of its end.
    this.#position = Math.min(this.#position + index, this.text.length)
    return this.#fail(Number.isNaN(point) ? UNKNOWN_ENTITY_MESSAGE : `character number ${point} is not valid`)
  }

  /** Continues counting from the last call, so that all calls together take one pass. */
  #currentLine(): number {
    for (let next = this.text.indexOf('\n', this.#lineOffset); next >= 0 && next < this.#position;) {
      this.#line++
      this.#lineOffset = next + 1
      next = this.text.indexOf('\n', this.#lineOffset)
    }
    return this.#line
  }

  #fail(what: string): never {
    throw new XmlError(`line ${this.#currentLine()}: ${what}`)
  }
}

const UNKNOWN_ENTITY_MESSAGE =
  'unknown entity: only &amp; &lt; &gt; &quot; &apos; and character numbers are supported'

/** Returns undefined for code points that XML forbids: control characters except white space, and surrogates. */
function toCharacter(point: number): string | undefined {
  const isSpace = point === 0x9 || point === 0xa || point === 0xd
  const isPlain = point >= 0x20 && point <= 0xfffd && !(point >= 0xd800 && point <= 0xdfff)
  return isSpace || isPlain || (point > 0xffff && point <= 0x10ffff) ? String.fromCodePoint(point) : undefined
}
