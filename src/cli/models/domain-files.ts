// Reads declarations from files of domain XML.
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import {
  readDomainXml,
  ROOT_ELEMENTS,
  type DomainDeclarations,
} from '../../formats/domain-xml/declarations.js'
import { MAX_XML_BYTES, parseXml, XmlError } from '../../formats/domain-xml/xml.js'
import type { ModelFile, SkipReason } from './model-files.js'

/** Bytes that are read to find the root element. */
const XML_HEAD_BYTES = 64 * 1024

/** Skips other XML that was found in a folder; reports an error for other XML that was named explicitly. */
export function readDomainFile(source: ModelFile, declared: DomainDeclarations): SkipReason | undefined {
  const { file, displayPath, isExplicit, reportError } = source
  const { root: rootName, isWide } = detectXmlRoot(file)
  const isOurs = (ROOT_ELEMENTS as readonly string[]).includes(rootName ?? '')
  // XML with another root element is not parsed.
  if (!isExplicit && !isOurs)
    return { kind: 'xml', ...(rootName === undefined ? {} : { detail: `its root element is <${rootName}>` }) }
  try {
    if (statSync(file).size > MAX_XML_BYTES)
      throw new XmlError(`the file has more than ${MAX_XML_BYTES} bytes`)
    if (isOurs && isWide) throw new XmlError('the file is not UTF-8; save it as UTF-8')
    const root = parseXml(readFileSync(file, 'utf8'))
    if (!readDomainXml(root, displayPath, declared, reportError))
      reportError(
        `its root element is <${root.name}>, but models need <${ROOT_ELEMENTS[0]}> and selections <${ROOT_ELEMENTS[1]}>`,
      )
  } catch (error) {
    if (!(error instanceof XmlError)) throw error
    reportError(error.message)
  }
  return undefined
}

interface XmlRoot {
  readonly root: string | undefined
  /**
   * The encoding has more than one byte for a letter, such as UTF-16. The root element is found by ignoring zero bytes.
   */
  readonly isWide: boolean
}

function detectXmlRoot(file: string): XmlRoot {
  const bytes = readHead(file)
  const isWide = bytes.includes(0)
  const text = isWide ? bytes.toString('latin1').replaceAll('\0', '') : bytes.toString('utf8')
  return { root: findFirstElement(text), isWide }
}

function readHead(file: string): Buffer {
  const handle = openSync(file, 'r')
  try {
    const head = Buffer.alloc(XML_HEAD_BYTES)
    return head.subarray(0, readSync(handle, head, 0, XML_HEAD_BYTES, 0))
  } finally {
    closeSync(handle)
  }
}

/** Skips comments, processing instructions and declarations. */
function findFirstElement(text: string): string | undefined {
  let start = text.indexOf('<')
  while (start >= 0) {
    const end = text.startsWith('<!--', start) ? text.indexOf('-->', start) : start + 1
    if (end < 0) return undefined
    if (!/^<[?!]/.test(text.slice(start, start + 2))) return /^[^\s/>]+/.exec(text.slice(start + 1))?.[0]
    start = text.indexOf('<', end)
  }
  return undefined
}
