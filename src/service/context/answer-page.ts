// The page of an answer. HTTP sends its JSON text; embedding programs take its records.
import type { Search } from '../../model/query/search.js'
import type { StagedFile } from '../../store/engine/staging.js'
import { parsePageJson, type FoundPage, type PageFacts, type PageJson } from '../../store/sql/found.js'
import type { NextPage, Page, WireRecord } from '../../wire.js'

/** A page that is too large for memory. Its JSON text is in a file, which must be read or discarded. */
export class StagedPage implements PageFacts {
  readonly seq: PageFacts['seq']
  readonly total: PageFacts['total']
  readonly nextCursor: PageFacts['nextCursor']

  constructor(
    { seq, total, nextCursor }: PageFacts,
    readonly json: StagedFile,
  ) {
    this.seq = seq
    this.total = total
    this.nextCursor = nextCursor
  }

  /** Reads the records into memory and discards the file. */
  async readRecords(): Promise<readonly WireRecord[]> {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of this.json.chunks()) chunks.push(chunk)
      return parsePageJson(Buffer.concat(chunks))
    } finally {
      this.json.discard()
    }
  }
}

export class AnswerPage {
  readonly offset: number
  readonly limit: number
  /** Undefined if the search asked for none, even if a counter knows it. */
  readonly total: number | undefined
  readonly seq: number

  constructor(
    { offset, limit, uncounted }: Pick<Search, 'offset' | 'limit' | 'uncounted'>,
    private readonly found: FoundPage | StagedPage,
    readonly next?: NextPage,
  ) {
    this.offset = offset
    this.limit = limit
    this.total = uncounted ? undefined : found.total
    this.seq = found.seq
  }

  /** The JSON texts of the records, separated by commas, in memory or in a file. */
  get json(): PageJson | StagedFile {
    return this.found.json
  }

  /** The page with its records as values. */
  async toPage(): Promise<Page> {
    const { offset, limit, total, seq, next, found } = this
    const data = found instanceof StagedPage ? await found.readRecords() : found.records
    const page = { offset, limit, ...(total === undefined ? {} : { total }), seq, data }
    // Only a search with `count: 'none'` has no total, and the overloads of `Records` give its page the type without one.
    return (next ? { ...page, next } : page) as Page
  }
}
