// Minimal domain XML for tests.
import type { ModelDefinition } from '../../src/model/definition/define-model.js'
import type { FieldDefinition } from '../../src/model/definition/field-definition.js'
import { convertDomainModels, type OtherModels } from '../../src/formats/domain-xml/models.js'
import { createDeclarations, readDomainXml } from '../../src/formats/domain-xml/declarations.js'
import { parseXml } from '../../src/formats/domain-xml/xml.js'

export const PACKAGE = 'org.test.db'

/** The text of a file of the package. */
export function domain(body: string, packageName = PACKAGE): string {
  return `<?xml version="1.0"?>\n<domain-models xmlns="urn:domain">\n<module name="m" package="${packageName}"/>\n${body}\n</domain-models>`
}

export interface Read {
  readonly definitions: readonly ModelDefinition[]
  /** `kind place: detail`, without the package. */
  readonly report: readonly string[]
  readonly faults: readonly string[]
}

/** Reads the files under the names 1.xml, 2.xml and so on. */
export function read(files: readonly string[], beside?: OtherModels): Read {
  const declared = createDeclarations()
  const fault = (what: string) => {
    throw new Error(what)
  }
  for (const [index, text] of files.entries())
    readDomainXml(parseXml(text), `${index + 1}.xml`, declared, fault)
  const { models, report, errors } = convertDomainModels(declared, beside)
  const short = (text: string) => text.replaceAll(`${PACKAGE}.`, '')
  return {
    definitions: models.map(({ definition }) => definition),
    report: report.map(({ kind, location, detail = '' }) =>
      short(`${kind} ${location}: ${detail}`.replace(/: $/, '')),
    ),
    faults: errors.map(short),
  }
}

/** The definition of the one field of the one entity. */
export function field(
  xml: string,
  more = '',
  views = '<object-views/>',
): { readonly definition: FieldDefinition | undefined; readonly report: readonly string[] } {
  const { definitions, report } = read([
    domain(`<entity name="A" jsonAttrs="false">${xml}</entity>${more}`),
    views,
  ])
  return { definition: Object.values(definitions[0]?.fields ?? {})[0], report }
}
