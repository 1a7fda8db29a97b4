// Parameters of a query string: names that a request does not know. An answer that ignores `sort=-title` misleads its reader.
import { didYouMean } from '../values/did-you-mean.js'

/** Words that other APIs use, in lower case and without punctuation, by the parameter that does the same here. */
const PARAMETER_SYNONYMS: Readonly<Record<string, string>> = {
  sortBy: 'sort sorting sortfield order orderby ordering direction dir desc asc',
  offset: 'page pageno pagenumber pageindex currentpage p skip start startat from',
  limit: 'size pagesize pagelimit perpage itemsperpage top take first max maxresults rows results count n',
  q: 'search searchtext query text term terms keyword keywords fulltext',
  filter: 'where filters filterby condition conditions criteria domain expression',
  fields: 'field select include includes expand columns attributes properties projection only embed populate',
  after: 'cursor startingafter startafter nextcursor pagetoken nextpagetoken nexttoken continuationtoken',
  archived: 'includearchived showarchived withtrashed includedeleted',
  asOf: 'at asat asofdate date time timestamp moment revision',
  since: 'after from cursor offset seq sinceseq lasteventid lastid start',
  wait: 'timeout poll longpoll block',
  model: 'models type types entity entities collection',
  version: 'ifmatch revision rev etag',
  name: 'field fields select column',
  action: 'actions permission right',
}

const PARAMETERS_BY_SYNONYM = new Map<string, string[]>()
for (const [parameter, words] of Object.entries(PARAMETER_SYNONYMS))
  for (const word of words.split(' '))
    PARAMETERS_BY_SYNONYM.set(word, [...(PARAMETERS_BY_SYNONYM.get(word) ?? []), parameter])

/** Where a page is asked for by its number, an offset in its place would be a wrong page. */
const PAGE_NUMBER_NAMES = /^(?:p|page|pageno|pagenumber|pageindex|currentpage)$/

/** What a request knows of its query string. */
export interface QueryParameterSet {
  readonly known: readonly string[]
  /** Where else to find a name that is unknown here; undefined for nowhere. */
  readonly elsewhere?: (name: string) => string | undefined
}

/** Names that begin with `_` are ignored: programs add them against caches, and they never are ours. */
function isIgnoredParameter(name: string, value: unknown): boolean {
  return value === undefined || name.startsWith('_')
}

/** One fault for each name in the query that the request does not know. */
export function listUnknownParameters(
  query: object,
  { known, elsewhere: defaultElsewhere }: QueryParameterSet,
  elsewhere = defaultElsewhere,
): string[] {
  const errors: string[] = []
  let isPlain = false
  for (const name of Object.keys(query)) {
    if (known.includes(name) || isIgnoredParameter(name, (query as Readonly<Record<string, unknown>>)[name]))
      continue
    const hint = suggestParameter(name, known) || (elsewhere?.(name) ?? '')
    isPlain ||= hint === ''
    errors.push(`unknown parameter "${name.slice(0, 100)}"${hint}`)
  }
  if (isPlain) errors.push(known.length === 0 ? 'this request takes none' : `known are ${known.join(', ')}`)
  return errors
}

function suggestParameter(name: string, known: readonly string[]): string {
  const word = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  const meant = PARAMETERS_BY_SYNONYM.get(word)?.find((parameter) => known.includes(parameter))
  if (meant === undefined) return didYouMean(name, known)
  const note = meant === 'offset' && PAGE_NUMBER_NAMES.test(word) ? ' It counts records, not pages' : ''
  return ` (did you mean "${meant}"?${note})`
}

/** The parameters that are known: for clients whose other ones are to be ignored. */
export function pickKnownParameters<T extends object>(query: T, { known }: QueryParameterSet): T {
  return Object.fromEntries(Object.entries(query).filter(([name]) => known.includes(name))) as T
}
