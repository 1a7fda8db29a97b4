// Makes a process kill itself, as by `kill -9`, when a write of a file reaches a given point.
import type { BlobStore, Database, Transaction } from '../../src/store/engine/database.js'
import { unsharedTransaction } from '../queryables.js'

export const POINTS = [
  'receiving',
  'received',
  'stored',
  'dropped',
  'worked',
  'committed',
  'swept',
  'settled',
] as const

/** In the order in which a write reaches them. */
export type Point = (typeof POINTS)[number]

let armed: Point | undefined
process.on('message', (point: Point) => {
  armed = point
  process.send?.('told')
})

function pass(point: Point): void {
  if (armed === point) process.kill(process.pid, 'SIGKILL')
}

export function withFailpoints(db: Database): Database {
  /** Transactions that store or remove content; the points apply to no others. */
  const ofFiles = new WeakSet<Transaction>()
  return {
    dialect: db.dialect,
    reader: db.reader,
    queryPool: db.queryPool,
    blobs: withPoints(db.blobs, ofFiles),
    commits: db.commits,
    writability: () => db.writability(),
    gauges: () => db.gauges(),
    measure: () => db.measure(),
    transaction: async (work, options) => {
      const { value, isOfFiles } = await db.transaction(async (tx) => {
        // A new object for each attempt, because the engine may give the same transaction to many.
        const own: Transaction = unsharedTransaction({
          all: (sql, params) => tx.all(sql, params),
          run: (sql, params) => tx.run(sql, params),
          insert: (sql, params) => tx.insert(sql, params),
        })
        const value = await work(own)
        if (ofFiles.has(own)) pass('worked')
        return { value, isOfFiles: ofFiles.has(own) }
      }, options)
      if (isOfFiles) pass('committed')
      return value
    },
    close: () => db.close(),
  }
}

function withPoints(blobs: BlobStore, ofFiles: WeakSet<Transaction>): BlobStore {
  return {
    receive: async (source, limitBytes) => {
      const incoming = await blobs.receive(interrupted(source), limitBytes)
      pass('received')
      return incoming
    },
    store: async (tx, id, incoming) => {
      ofFiles.add(tx)
      await blobs.store(tx, id, incoming)
      pass('stored')
    },
    drop: async (tx, file) => {
      ofFiles.add(tx)
      await blobs.drop(tx, file)
      pass('dropped')
    },
    collect: async () => {
      await blobs.collect()
      pass('swept')
    },
    finish: async (incoming) => {
      await blobs.finish(incoming)
      pass('settled')
    },
    open: (file) => blobs.open(file),
    openInSnapshot: (snapshot, file) => blobs.openInSnapshot(snapshot, file),
    retainDropped: () => blobs.retainDropped(),
    recover: (forgottenMs) => blobs.recover(forgottenMs),
    countPending: () => blobs.countPending(),
    findOrphans: () => blobs.findOrphans(),
    close: () => blobs.close(),
  }
}

/** Passes the point after the first bytes are written. */
async function* interrupted(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    yield chunk
    pass('receiving')
  }
}
