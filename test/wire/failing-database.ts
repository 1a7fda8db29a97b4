import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { queryPoolOf, unshared } from '../queryables.js'

/** A real database that fails with `failure` as long as it is set. */
export class FailingDatabase implements Database {
  failure: Error | undefined

  private constructor(private readonly inner: Database) {}

  static async open(url: string): Promise<FailingDatabase> {
    return new FailingDatabase(await openDatabase(url, { poolSize: 2, statementTimeoutMs: 10_000 }))
  }

  get dialect(): Database['dialect'] {
    return this.inner.dialect
  }

  get blobs(): Database['blobs'] {
    return this.inner.blobs
  }

  get commits(): Database['commits'] {
    return this.inner.commits
  }

  writability: Database['writability'] = () => this.inner.writability()
  gauges: Database['gauges'] = () => this.inner.gauges()
  measure: Database['measure'] = () => this.inner.measure()

  readonly reader = unshared({
    all: async (sql, params) => {
      if (this.failure) throw this.failure
      return this.inner.reader.all(sql, params)
    },
  })

  readonly queryPool = queryPoolOf(
    async (sql, params) => {
      if (this.failure) throw this.failure
      return this.inner.queryPool.all(sql, params)
    },
    async (work) => {
      if (this.failure) throw this.failure
      return this.inner.queryPool.snapshot(work)
    },
  )

  transaction: Database['transaction'] = async (work, options) => {
    if (this.failure) throw this.failure
    return this.inner.transaction(work, options)
  }

  async close(): Promise<void> {
    await this.inner.close()
  }
}
