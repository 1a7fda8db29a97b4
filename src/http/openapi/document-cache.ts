// Caches documents by key. Builds one at a time, because each may take much memory.

/** Total size of the cached documents. */
const MAX_CACHED_BYTES = 64 * 1024 * 1024

export class DocumentCache {
  /** From the least to the most recently used. */
  readonly #documents = new Map<string, Buffer>()
  readonly #pending = new Map<string, Promise<Buffer>>()
  #queue: Promise<unknown> = Promise.resolve()
  #bytes = 0

  constructor(private readonly maxBytes = MAX_CACHED_BYTES) {}

  /** Returns the document of the key. Concurrent calls share one build. */
  async get(key: string, build: () => Promise<Buffer>): Promise<Buffer> {
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

  async #build(key: string, build: () => Promise<Buffer>): Promise<Buffer> {
    const previous = this.#queue
    const building = previous.then(build, build)
    this.#queue = building
    try {
      const document = await building
      this.#add(key, document)
      return document
    } finally {
      this.#pending.delete(key)
    }
  }

  #add(key: string, document: Buffer): void {
    if (document.length > this.maxBytes) return
    this.#documents.set(key, document)
    this.#bytes += document.length
    for (const [oldest, { length }] of this.#documents) {
      if (this.#bytes <= this.maxBytes) return
      this.#documents.delete(oldest)
      this.#bytes -= length
    }
  }
}
