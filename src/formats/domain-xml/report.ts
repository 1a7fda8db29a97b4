// The report about domain XML: everything that the service does not support or handles differently.

/** The texts of a kind in singular and plural. */
export type DiagnosticTexts = readonly [
  one: string,
  several: string,
  advice?: readonly [one: string, several: string],
]

/** The kinds in the order of the report. The number of diagnostics precedes each text. */
const DIAGNOSTIC_KINDS = {
  'system-model': [
    'entity is a model of the service itself, and left out',
    'entities are models of the service itself, and left out',
  ],
  parent: [
    'entity extends another that is nowhere defined',
    'entities extend others that are nowhere defined',
  ],
  target: [
    'relation leads to an entity that is nowhere defined, and is left out',
    'relations lead to entities that are nowhere defined, and are left out',
  ],
  'mapped-by': [
    'other side of a relation does not fit, and is left out',
    'other sides of relations do not fit, and are left out',
  ],
  enum: [
    'field names an enum that is nowhere defined, and is left out',
    'fields name enums that are nowhere defined, and are left out',
  ],
  reserved: [
    'field has a name of the service itself, and is left out',
    'fields have names of the service itself, and are left out',
  ],
  computed: [
    'field is computed in Java',
    'fields are computed in Java',
    ['supply it with extendModel', 'supply them with extendModel'],
  ],
  transient: ['field is transient, and left out', 'fields are transient, and left out'],
  formula: ['field is an SQL formula, and left out', 'fields are SQL formulas, and left out'],
  'unmapped-list': [
    'one-to-many has no mappedBy, and is served as a many-to-many',
    'one-to-many lists have no mappedBy, and are served as many-to-many',
  ],
  'second-owner': [
    'list shows the records that another one owns, and is a view',
    'lists show the records that others own, and are views',
  ],
  'order-by': [
    'key of an order names nothing to order a list by, and is left out',
    'keys of orders name nothing to order a list by, and are left out',
  ],
  selection: [
    'field is not checked against its selection',
    'fields are not checked against their selections',
  ],
  default: [
    'default does not suit its field, and is left out',
    'defaults do not suit their fields, and are left out',
  ],
  limit: [
    'limit does not suit its field, and is left out',
    'limits do not suit their fields, and are left out',
  ],
  sequence: ['sequence cannot be followed in full', 'sequences cannot be followed in full'],
  constraint: [
    'constraint or index cannot be made, and is left out',
    'constraints and indexes cannot be made, and are left out',
  ],
  'name-field': ['name column cannot stand for its record', 'name columns cannot stand for their records'],
  repeated: [
    'declaration is there twice: its attributes are merged into the first one',
    'declarations are there twice: their attributes are merged into the first ones',
  ],
  override: [
    'attribute cannot be overridden, and stays as it was',
    'attributes cannot be overridden, and stay as they were',
  ],
  encrypted: [
    'field is to be encrypted, and is kept as it is sent',
    'fields are to be encrypted, and are kept as they are sent',
  ],
  translatable: [
    'field is translatable, and has one text for all',
    'fields are translatable, and have one text for all',
  ],
  strategy: [
    'entity shares a table by inheritance; here it has its own, with all fields',
    'entities share tables by inheritance; here each has its own, with all fields',
  ],
  listener: ['entity has listeners in Java', 'entities have listeners in Java'],
  finder: ['entity has finder methods', 'entities have finder methods'],
  track: [
    'entity tracks changes by messages; the Log keeps all of them',
    'entities track changes by messages; the Log keeps all of them',
  ],
  'extra-code': ['entity has extra code in Java', 'entities have extra code in Java'],
  element: ['element is not known', 'elements are not known'],
  attribute: ['attribute is not known', 'attributes are not known'],
} as const satisfies Record<string, DiagnosticTexts>

export type DiagnosticKind = keyof typeof DIAGNOSTIC_KINDS

/** A message about one location. */
export interface Diagnostic<Kind extends string> {
  readonly kind: Kind
  /** An entity, a field as `entity.field`, or a file. */
  readonly location: string
  readonly detail?: string
}

export type DomainDiagnostic = Diagnostic<DiagnosticKind>
export type ReportDiagnostic = (diagnostic: DomainDiagnostic) => void

const MAX_SUMMARY_LOCATIONS = 3

export function summarizeReport(report: readonly DomainDiagnostic[]): string[] {
  return summarizeDiagnostics(DIAGNOSTIC_KINDS, report)
}

export function formatReport(report: readonly DomainDiagnostic[]): string {
  return formatDiagnostics(DIAGNOSTIC_KINDS, report)
}

type DiagnosticKinds<Kind extends string> = Readonly<Record<Kind, DiagnosticTexts>>

/** Returns one short line for each kind, with the first few locations. */
export function summarizeDiagnostics<Kind extends string>(
  kinds: DiagnosticKinds<Kind>,
  diagnostics: readonly Diagnostic<Kind>[],
): string[] {
  return groupByKind(kinds, diagnostics).map(({ heading, members, advice }) => {
    const places = members.slice(0, MAX_SUMMARY_LOCATIONS).map((line) => line.location)
    const more = members.length > MAX_SUMMARY_LOCATIONS ? ', …' : ''
    return `${heading}: ${places.join(', ')}${more}${advice === undefined ? '' : `: ${advice}`}`
  })
}

/** Lists all diagnostics by kind. */
export function formatDiagnostics<Kind extends string>(
  kinds: DiagnosticKinds<Kind>,
  diagnostics: readonly Diagnostic<Kind>[],
): string {
  const parts = groupByKind(kinds, diagnostics).map(({ heading, members, advice }) => {
    const lines = members.map(
      ({ location, detail }) => `  ${location}${detail === undefined ? '' : `: ${detail}`}\n`,
    )
    return `${heading}${advice === undefined ? '' : `: ${advice}`}\n${lines.join('')}`
  })
  return parts.join('\n')
}

interface DiagnosticGroup {
  readonly heading: string
  readonly members: readonly Diagnostic<string>[]
  readonly advice: string | undefined
}

function groupByKind<Kind extends string>(
  kinds: DiagnosticKinds<Kind>,
  diagnostics: readonly Diagnostic<Kind>[],
): DiagnosticGroup[] {
  return Object.entries<DiagnosticTexts>(kinds).flatMap(([kind, [one, several, advice]]) => {
    const members = diagnostics.filter((line) => line.kind === kind)
    if (members.length === 0) return []
    const index = members.length === 1 ? 0 : 1
    return [{ heading: `${members.length} ${[one, several][index]}`, members, advice: advice?.[index] }]
  })
}
