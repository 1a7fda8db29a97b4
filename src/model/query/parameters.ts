// Rejects unknown query parameters: a response that silently ignores `sort=-title` would be misleading.
import { didYouMean, shortenForMessage } from '../values/did-you-mean.js'
import type { JsonObject } from '../values/value.js'

/** The equivalents of each parameter in other APIs, in lower case without punctuation. */
const PARAMETER_SYNONYMS: Readonly<Record<string, string>> = {
  sortBy: 'sort sorting sortfield order orderby ordering direction dir desc asc',
  offset: 'page pageno pagenumber pageindex currentpage p skip start startat from',
  limit: 'size pagesize pagelimit perpage itemsperpage top take first max maxresults rows results n',
  q: 'search searchtext query text term terms keyword keywords fulltext',
  filter: 'where filters filterby condition conditions criteria domain expression',
  fields: 'field select include includes expand columns attributes properties projection only embed populate',
  after: 'cursor startingafter startafter nextcursor pagetoken nextpagetoken nexttoken continuationtoken',
  before:
    'after cursor nextcursor next until endingbefore offset pagetoken nextpagetoken nexttoken continuationtoken',
  archived: 'includearchived showarchived withtrashed includedeleted',
  count: 'nocount skipcount withcount total includetotal totalcount skiptotal',
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

/** Other APIs use these for page numbers. Sent as an offset, such a number would return the wrong page. */
const PAGE_NUMBER_NAMES = /^(?:p|page|pageno|pagenumber|pageindex|currentpage)$/

/** The query parameters of a request. */
export interface QueryParameterSet {
  readonly known: readonly string[]
  /** Returns a hint for a parameter that another request knows. */
  readonly elsewhere?: (name: string) => string | undefined
}

/** Ignores names that begin with `_`: programs add them to bypass caches, and this API has none. */
function isIgnoredParameter(name: string, value: unknown): boolean {
  return value === undefined || name.startsWith('_')
}

/** Returns one error message for each unknown parameter of the query. */
export function listUnknownParameters(
  query: object,
  { known, elsewhere: defaultElsewhere }: QueryParameterSet,
  elsewhere = defaultElsewhere,
): string[] {
  const errors: string[] = []
  let isPlain = false
  for (const name of Object.keys(query)) {
    if (known.includes(name) || isIgnoredParameter(name, (query as JsonObject)[name])) continue
    const hint = suggestParameter(name, known) || (elsewhere?.(name) ?? '')
    isPlain ||= hint === ''
    errors.push(`unknown parameter "${shortenForMessage(name)}"${hint}`)
  }
  if (isPlain)
    errors.push(
      known.length === 0 ? 'this request has no parameters' : `known parameters: ${known.join(', ')}`,
    )
  return errors
}

function suggestParameter(name: string, known: readonly string[]): string {
  const word = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  const parameter = PARAMETERS_BY_SYNONYM.get(word)?.find((each) => known.includes(each))
  if (parameter === undefined) return didYouMean(name, known)
  const note = parameter === 'offset' && PAGE_NUMBER_NAMES.test(word) ? ' It counts records, not pages' : ''
  return ` (did you mean "${parameter}"?${note})`
}

/** Drops unknown parameters, for clients that expect them to be ignored. */
export function pickKnownParameters<T extends object>(query: T, { known }: QueryParameterSet): T {
  return Object.fromEntries(Object.entries(query).filter(([name]) => known.includes(name))) as T
}
