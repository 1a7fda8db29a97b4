// Results of reads. The database has built JSON text, or the service has decoded rows. The other form is built on first use.
import type { PageCursor } from '../../model/query/cursor.js'
import type { WireRecord } from '../../wire.js'
import { parseStoredJson } from '../engine/write-health.js'

/** A record as JSON text and as a value. */
export class FoundRecord {
  #json: string | undefined
  #record: WireRecord | undefined

  /** `content` is the record, or its JSON text. */
  constructor(
    readonly version: number,
    content: string | WireRecord,
  ) {
    if (typeof content === 'string') this.#json = content
    else this.#record = content
  }

  get json(): string {
    return (this.#json ??= JSON.stringify(this.#record))
  }

  get record(): WireRecord {
    return (this.#record ??= parseStoredJson(this.#json) as WireRecord)
  }

  /** True if `json` costs nothing. */
  get hasJson(): boolean {
    return this.#json !== undefined
  }
}

export interface PageFacts {
  /** The sequence number of the last Change that the page reflects. */
  readonly seq: number
  /** Undefined if the search does not count its matches and no counter knows their number. */
  readonly total: number | undefined
  /** The cursor of the last record, if others follow. */
  readonly nextCursor: PageCursor | undefined
}

/** The JSON texts of records, separated by commas, as a string or as bytes. */
export type PageJson = string | Uint8Array

/** A page of records as JSON text and as values. */
export class FoundPage implements PageFacts {
  readonly seq: number
  readonly total: PageFacts['total']
  readonly nextCursor: PageCursor | undefined
  #json: PageJson | undefined
  #records: readonly WireRecord[] | undefined

  /** `content` are the records, or their JSON text. */
  constructor({ seq, total, nextCursor }: PageFacts, content: PageJson | readonly WireRecord[]) {
    this.seq = seq
    this.total = total
    this.nextCursor = nextCursor
    if (typeof content === 'string' || content instanceof Uint8Array) this.#json = content
    else this.#records = content
  }

  get json(): PageJson {
    return (this.#json ??= this.records.map((record) => JSON.stringify(record)).join())
  }

  get records(): readonly WireRecord[] {
    return (this.#records ??= parsePageJson(this.#json ?? ''))
  }
}

export function parsePageJson(json: PageJson): readonly WireRecord[] {
  const text = typeof json === 'string' ? json : Buffer.from(json).toString()
  return parseStoredJson(`[${text}]`) as readonly WireRecord[]
}
