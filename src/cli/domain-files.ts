// Files of domain XML → what they declare.
import { readFileSync, statSync } from 'node:fs'
import { readDomain, ROOTS, type Declared } from '../model/domain/declared.js'
import { MAX_XML_BYTES, parseXml, XmlFault } from '../model/domain/xml.js'

const OURS = new RegExp(`<(${ROOTS.join('|')})[\\s/>]`)

/** A folder may hold XML of other kinds; a file that was named by itself may not be one of these. */
export function readXml(
  file: string,
  shown: string,
  declared: Declared,
  isNamed: boolean,
  report: (fault: string) => void,
): void {
  try {
    if (statSync(file).size > MAX_XML_BYTES) throw new XmlFault(`it has more than ${MAX_XML_BYTES} bytes`)
    const bytes = readFileSync(file)
    if (isWide(bytes)) throw new XmlFault('it is not UTF-8: save it as UTF-8')
    const text = bytes.toString('utf8')
    // What is not ours is not even parsed.
    if (!isNamed && !OURS.test(text)) return
    const root = parseXml(text)
    if (!readDomain(root, shown, declared, report) && isNamed)
      report(`its root is <${root.name}>: models stand in <${ROOTS[0]}>, selections in <${ROOTS[1]}>`)
  } catch (error) {
    if (!(error instanceof XmlFault) && !(error instanceof Error && 'code' in error)) throw error
    report(error.message)
  }
}

/** Ours, in an encoding whose letters have more than one byte, such as UTF-16: without the zeros it can be recognized. */
function isWide(bytes: Buffer): boolean {
  return bytes.includes(0) && OURS.test(bytes.toString('latin1').replaceAll('\0', ''))
}
