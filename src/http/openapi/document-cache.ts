// Caches documents by key. Builds one at a time, because each may take much memory.
import { hash } from 'node:crypto'

/** Total size of the cached documents. */
const MAX_CACHED_BYTES = 64 * 1024 * 1024

/** A document and the hash of its content. Hashing a large document takes longer than sending it. */
export interface CachedDocument {
  readonly body: Buffer
  readonly digest: string
}

export class DocumentCache {
  /** From the least to the most recently used. */
  readonly #documents = new Map<string, CachedDocument>()
  readonly #pending = new Map<string, Promise<CachedDocument>>()
  #queue: Promise<unknown> = Promise.resolve()
  #bytes = 0

  constructor(private readonly maxBytes = MAX_CACHED_BYTES) {}

  /** Returns the document of the key. Concurrent calls share one build. */
  async get(key: string, build: () => Promise<Buffer>): Promise<CachedDocument> {
    const cached = this.#documents.get(key)
    if (cached) {
      this.#documents.delete(key)
      this.#documents.set(key, cached)
      return cached
    }
    const pending = this.#pending.get(key) ?? this.#build(key, build)
    this.#pending.set(key, pending)
    return pending
  }

  async #build(key: string, build: () => Promise<Buffer>): Promise<CachedDocument> {
    const previous = this.#queue
    const building = previous.then(build, build)
    this.#queue = building
    try {
      const body = await building
      const document = { body, digest: hash('sha256', body) }
      this.#add(key, document)
      return document
    } finally {
      this.#pending.delete(key)
    }
  }

  #add(key: string, document: CachedDocument): void {
    const { length } = document.body
    if (length > this.maxBytes) return
    this.#documents.set(key, document)
    this.#bytes += length
    for (const [oldest, { body }] of this.#documents) {
      if (this.#bytes <= this.maxBytes) return
      this.#documents.delete(oldest)
      this.#bytes -= body.length
    }
  }
}
