// The attributes that domain XML has; any other is a slip of the pen, and told.
import type { ReportLine } from './report.js'
import type { Attributes, RawEntity } from './declarations.js'
import { didYouMean } from '../../model/values/did-you-mean.js'

const OF_ENTITIES = [
  ...['name', 'title', 'table', 'extends', 'implements', 'strategy', 'persistable', 'cacheable'],
  ...['repository', 'logUpdates', 'jsonAttrs', 'equalsIncludeAll', 'allocationSize', 'sequential'],
]
/** Of all types, and those for views and for Java too, which mean nothing here. */
const OF_FIELDS = [
  ...['name', 'column', 'title', 'help', 'hidden', 'readonly', 'initParam', 'index', 'insertable'],
  ...['updatable', 'required', 'unique', 'default', 'transient', 'massUpdate', 'copy', 'nullable'],
  ...['selection', 'formula', 'equalsInclude', 'min', 'max', 'multiline', 'large', 'namecolumn'],
  ...['search', 'json', 'password', 'sequence', 'translatable', 'encrypted', 'precision', 'scale'],
  ...['tz', 'image', 'ref', 'mappedBy', 'orphanRemoval', 'orderBy', 'table', 'column2'],
]

export function tellUnknownAttributes(
  entities: readonly RawEntity[],
  report: (line: ReportLine) => void,
): void {
  for (const { name, attributes, fields, file } of entities) {
    const tell = (place: string, present: Attributes, known: readonly string[]) => {
      for (const attribute of present.keys()) {
        if (known.includes(attribute) || isOfXml(attribute)) continue
        const detail = `${attribute}${didYouMean(attribute, known)} in ${file}`
        report({ kind: 'attribute', place, detail })
      }
    }
    tell(name, attributes, OF_ENTITIES)
    for (const field of fields) tell(`${name}.${field.name}`, field.attributes, OF_FIELDS)
  }
}

/** Namespaces, and what stands in one of its own. */
function isOfXml(attribute: string): boolean {
  return attribute === 'xmlns' || attribute.includes(':')
}
