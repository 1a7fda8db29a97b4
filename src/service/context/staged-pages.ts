// Pages that may be too large for memory. A page over the limit is rejected before its records are read; a page within the limit is staged in a file.
import type { Search } from '../../model/query/search.js'
import type { Queryable } from '../../store/engine/database.js'
import type { StagedFile } from '../../store/engine/staging.js'
import {
  countRecordsWithin,
  measurePage,
  readJsonSlices,
  takeWithinBytes,
  type MeasuredPage,
} from '../../store/find/large-pages.js'
import { FoundPage } from '../../store/sql/found.js'
import type { Select } from '../../store/sql/select.js'
import type { Table } from '../../store/sql/table.js'
import { computeAnswerRoom, computeMemoryLimit, createPageTooLargeError } from './answer-limits.js'
import { StagedPage } from './answer-page.js'
import type { App } from './app.js'
import type { Settings } from './settings.js'

/** Reads a page in small parts from one snapshot into a file. The snapshot is closed before the first byte is sent to the client. */
export async function stagePage(
  app: App,
  table: Table,
  search: Search,
  select: Select,
): Promise<StagedPage | FoundPage> {
  const { staging, settings } = app
  return staging.runSerially(async () => {
    let file: StagedFile | undefined
    try {
      return await app.db.queryPool.snapshot(async (db) => {
        const page = await measurePage(db, table, search, select)
        await refuseLargePage(settings, db, table, { page, select })
        if (page.records.length === 0) return new FoundPage(page, '')
        // `snapshot` may retry the work.
        file?.discard()
        file = staging.open()
        let count = 0
        for await (const texts of readJsonSlices(db, select, page.records)) {
          for (const text of texts) {
            const bytes = Buffer.from(count === 0 ? text : `,${text}`)
            if (file.size + bytes.length > computeAnswerRoom(settings))
              throw createPageTooLargeError(settings, count)
            file.append(bytes)
            count++
          }
        }
        return new StagedPage(page, file)
      })
    } catch (error) {
      file?.discard()
      throw error
    }
  })
}

interface PageMeasurement {
  readonly page: MeasuredPage
  readonly select: Select
}

async function refuseLargePage(
  settings: Settings,
  db: Queryable,
  table: Table,
  { page, select }: PageMeasurement,
): Promise<void> {
  const bytes = computeAnswerRoom(settings)
  if (page.bytes <= bytes) return
  throw createPageTooLargeError(
    settings,
    await countRecordsWithin(db, table, select, { records: page.records, bytes }),
  )
}

interface PageAtRequest {
  readonly search: Search
  readonly select: Select
}

/** Rejects a page of a past state that is too large. `table` is the rewound table. */
export async function refuseLargePageAt(
  settings: Settings,
  db: Queryable,
  table: Table,
  { search, select }: PageAtRequest,
): Promise<void> {
  if (select.maxBytes * search.limit <= computeMemoryLimit(settings)) return
  const { bytes, records } = await measurePage(db, table, search, select)
  const room = computeAnswerRoom(settings)
  if (bytes > room) throw createPageTooLargeError(settings, takeWithinBytes(records, room).length)
}
