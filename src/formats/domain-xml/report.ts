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
    'entity has the name of a built-in model and is left out',
    'entities have the names of built-in models and are left out',
  ],
  parent: ['entity extends an undefined entity', 'entities extend undefined entities'],
  target: [
    'relation refers to an undefined entity and is left out',
    'relations refer to undefined entities and are left out',
  ],
  'mapped-by': [
    'inverse relation does not match its mappedBy field and is left out',
    'inverse relations do not match their mappedBy fields and are left out',
  ],
  enum: [
    'field refers to an undefined enum and is left out',
    'fields refer to undefined enums and are left out',
  ],
  reserved: ['field has a reserved name and is left out', 'fields have reserved names and are left out'],
  computed: [
    'field is computed in Java',
    'fields are computed in Java',
    ['supply it with extendModel', 'supply them with extendModel'],
  ],
  transient: ['field is transient and is left out', 'fields are transient and are left out'],
  formula: ['field is an SQL formula and is left out', 'fields are SQL formulas and are left out'],
  'unmapped-list': [
    'one-to-many list has no mappedBy and is served as a many-to-many',
    'one-to-many lists have no mappedBy and are served as many-to-many',
  ],
  'second-owner': [
    'owned list contains records that another list owns: it is a read-only inverse relation',
    'owned lists contain records that other lists own: they are read-only inverse relations',
  ],
  'order-by': [
    'key of an orderBy cannot sort its list and is left out',
    'keys of orderBy cannot sort their lists and are left out',
  ],
  selection: [
    'field is not checked against its selection',
    'fields are not checked against their selections',
  ],
  default: [
    'default is not valid for its field and is left out',
    'defaults are not valid for their fields and are left out',
  ],
  limit: [
    'limit is not valid for its field and is left out',
    'limits are not valid for their fields and are left out',
  ],
  rule: ['rule has no effect', 'rules have no effect'],
  sequence: ['sequence is supported only in part', 'sequences are supported only in part'],
  constraint: [
    'constraint or index cannot be created and is left out',
    'constraints and indexes cannot be created and are left out',
  ],
  'name-field': [
    'name column cannot be the name of its record',
    'name columns cannot be the names of their records',
  ],
  repeated: [
    'declaration occurs twice: its attributes are merged into the first one',
    'declarations occur twice: their attributes are merged into the first ones',
  ],
  override: [
    'attribute cannot be overridden and keeps its first value',
    'attributes cannot be overridden and keep their first values',
  ],
  encrypted: [
    'field is marked as encrypted but is stored unencrypted',
    'fields are marked as encrypted but are stored unencrypted',
  ],
  translatable: [
    'field is translatable and has one text for all languages',
    'fields are translatable and have one text for all languages',
  ],
  strategy: [
    'entity shares a table by inheritance; here it has its own table with all fields',
    'entities share tables by inheritance; here each has its own table with all fields',
  ],
  listener: ['entity has listeners in Java', 'entities have listeners in Java'],
  finder: ['entity has finder methods', 'entities have finder methods'],
  track: [
    'entity tracks changes with messages; here the change log records all changes',
    'entities track changes with messages; here the change log records all changes',
  ],
  'extra-code': ['entity has extra code in Java', 'entities have extra code in Java'],
  element: ['element is unknown and ignored', 'elements are unknown and ignored'],
  attribute: ['attribute is unknown and ignored', 'attributes are unknown and ignored'],
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
