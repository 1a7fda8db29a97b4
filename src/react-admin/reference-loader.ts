// Loads related records: collects the ids of all calls of one tick, and asks for them in one request.
import type { Client } from '../client/client-types.js'
import type { WireRecord } from '../wire.js'
import { findRecords } from './find-pages.js'

/** Ids in one request. More of them may make a URL that is too long. */
const MAX_IDS = 200

export interface ReferenceRequest {
  readonly ids: readonly number[]
  readonly fields?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

type RecordsById = ReadonlyMap<number, WireRecord>

/** Calls that wait for the same records. */
interface LoadGroup {
  readonly ids: Set<number>
  readonly controller: AbortController
  readonly records: Promise<RecordsById>
  waiting: number
}

export class ReferenceLoader {
  readonly #client: Client
  /** Groups that still take ids, by model and fields. */
  readonly #open = new Map<string, LoadGroup>()

  constructor(client: Client) {
    this.#client = client
  }

  /** Returns the records in the order of the ids. Leaves out those that do not exist. */
  async load(model: string, { ids, fields, signal }: ReferenceRequest): Promise<WireRecord[]> {
    signal?.throwIfAborted()
    const key = JSON.stringify([model, fields])
    const opened = this.#open.get(key)
    // All callers of an aborted group have left. Their reason is not that of this call.
    const group = opened && !opened.controller.signal.aborted ? opened : this.#openGroup(key, model, fields)
    for (const id of ids) group.ids.add(id)
    const records = await waitIn(group, signal)
    return ids.flatMap((id) => records.get(id) ?? [])
  }

  #openGroup(key: string, model: string, fields: readonly string[] | undefined): LoadGroup {
    const ids = new Set<number>()
    const controller = new AbortController()
    const endOfTick = new Promise((resolve) => setTimeout(resolve))
    const records = endOfTick.then(() => {
      if (this.#open.get(key) === group) this.#open.delete(key)
      return this.#find(model, { ids: [...ids], fields, signal: controller.signal })
    })
    // After all callers have left, nobody waits for the failure.
    records.catch(() => undefined)
    const group = { ids, controller, records, waiting: 0 }
    this.#open.set(key, group)
    return group
  }

  async #find(model: string, { ids, fields, signal }: ReferenceRequest): Promise<RecordsById> {
    const chunks = Array.from({ length: Math.ceil(ids.length / MAX_IDS) }, (_, index) =>
      ids.slice(index * MAX_IDS, (index + 1) * MAX_IDS),
    )
    const pages = await Promise.all(
      chunks.map((chunk) => {
        const filter = `id in (${chunk.join()})`
        // A record may refer to an archived one.
        const query = { fields, filter, archived: true, limit: chunk.length, count: 'none' as const }
        return findRecords(this.#client, model, query, { signal })
      }),
    )
    return new Map(pages.flatMap(({ data }) => data.map((record) => [record.id, record])))
  }
}

/** Waits for the records of a group. Its request is aborted after the last of its callers has left. */
async function waitIn(group: LoadGroup, signal: AbortSignal | undefined): Promise<RecordsById> {
  group.waiting += 1
  if (!signal) return group.records
  let leave = () => {}
  const left = new Promise<never>((_, reject) => {
    leave = () => {
      group.waiting -= 1
      if (group.waiting === 0) group.controller.abort(signal.reason)
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', leave)
  })
  try {
    return await Promise.race([group.records, left])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
