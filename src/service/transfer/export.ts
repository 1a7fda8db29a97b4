// Exports all records of a model or of a search, page by page, in bounded memory.
import { VersoError } from '../../errors.js'
import { andCriteria } from '../../model/query/criteria.js'
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import { ID_FIELD, VERSION_FIELD } from '../../model/query/path.js'
import { parseSearchRequest } from '../../model/query/search.js'
import { selectListFields, type Selection } from '../../model/query/selection.js'
import { isFileField, listTransferFields, selectTransferFields } from '../../formats/transfer-fields.js'
import { isObject } from '../../model/values/value.js'
import { countFirstSlice, measureScan } from '../../store/find/large-pages.js'
import { scanById, type IdScan } from '../../store/records/records.js'
import { compileSelection } from '../../store/sql/select.js'
import type { WireRecord } from '../../wire.js'
import { computeAnswerRoom } from '../context/answer-limits.js'
import { requirePermission } from '../access/request-checks.js'
import { getVisibleCriteria } from '../access/visible-records.js'
import { FileExport, type ContentSink, type ExportApp } from './export-files.js'
import { getVisibility, type Context } from '../context/context.js'

const FIRST_PAGE_ROWS = 50
const MAX_PAGE_ROWS = 500
const PAGE_BYTES = 1024 * 1024

/**
 * Exports complete records as in transfer files (see `selectTransferFields`), including archived ones. Passes the contents of their files to
 * `sink` before it yields the record.
 */
export async function* exportModel(
  app: ExportApp,
  model: Model,
  sink?: ContentSink,
): AsyncGenerator<readonly WireRecord[]> {
  const selection = selectTransferFields(app.catalog, model)
  const pages = readPages(app, model, selection)
  if (!listTransferFields(model).some(isFileField)) {
    yield* pages
    return
  }
  const files = new FileExport(app, app.tables.of(model), selection, sink)
  for await (const page of pages) yield await files.complete(page)
}

export interface ExportTable {
  readonly columns: readonly ExportColumn[]
  readonly pages: AsyncGenerator<readonly WireRecord[]>
}

export interface ExportColumn {
  readonly key: string
  readonly field: Field
}

/** Exports all results of a search, sorted by id. Errors of the request are thrown here; later errors are thrown by `pages`. */
export function exportSearch(context: Context, model: Model, request: unknown): ExportTable {
  const { principal, app } = context
  requirePermission(principal, 'read', model)
  requirePermission(principal, 'export', model)
  const { offset, limit, sortBy, fields, ...rest } = isObject(request) ? request : {}
  const errors: string[] = []
  for (const [name, value] of Object.entries({ offset, limit }))
    if (value !== undefined && value !== null)
      errors.push(`an export does not support ${name}: it contains all matching records`)
  if (sortBy !== undefined && sortBy !== null && !sortsByIdOnly(sortBy))
    errors.push('an export is sorted by id: omit sortBy and sort the result')
  if (errors.length > 0) throw new VersoError('bad-request', errors.join('; '))
  // Clients send an empty list to select the default columns.
  const fieldNames = Array.isArray(fields) && fields.length === 0 ? undefined : fields
  const searchRequest = isObject(request) ? { ...rest, fields: fieldNames } : request
  const visibility = getVisibility(app, principal)
  const { selection, where, archived } = parseSearchRequest(
    visibility,
    model,
    searchRequest,
    app.settings.maxPageSize,
  )
  const exported = selection ?? selectListFields(visibility, model)
  const excludesArchived = model.archived && !archived
  const visible = andCriteria(
    getVisibleCriteria(principal, model),
    principal.permissions?.of(model).criteriaFor('export'),
  )
  const filter = { where, visible, excludesArchived, maxBytes: computeAnswerRoom(app.settings) }
  return { columns: selectColumns(exported, fieldNames), pages: readPages(app, model, exported, filter) }
}

/** Keeps the order of the request. Includes id and version only if they are requested. */
function selectColumns({ entries }: Selection, named: unknown): ExportColumn[] {
  const columns: ExportColumn[] = [
    ...entries,
    { key: 'id', field: ID_FIELD },
    { key: 'version', field: VERSION_FIELD },
  ]
  const keys = Array.isArray(named) ? new Set(named as string[]) : entries.map(({ key }) => key)
  return [...keys].flatMap((name) => columns.find(({ key }) => key === name) ?? [])
}

function sortsByIdOnly(sortBy: unknown): boolean {
  return Array.isArray(sortBy) && sortBy.every((key) => key === 'id' || key === '+id')
}

interface ExportFilter extends Pick<IdScan, 'where' | 'visible' | 'excludesArchived'> {
  /** Maximum size of one record. */
  readonly maxBytes?: number
}

/** Reads the next page while the consumer uses the current one. Every page is its own statement, so stopping early leaves none open. */
async function* readPages(
  { db, tables }: ExportApp,
  model: Model,
  selection: Selection,
  { maxBytes = Infinity, ...filter }: ExportFilter = {},
): AsyncGenerator<readonly WireRecord[]> {
  const select = compileSelection(db.dialect, selection)
  const table = tables.of(model)
  const readPage = async (after: number, maxRows: number): Promise<ExportPage> => {
    const scan = { after, limit: maxRows, ...filter, select }
    const limit = select.maxBytes * maxRows <= PAGE_BYTES ? maxRows : await measureLimit(scan)
    return { limit, page: await scanById(db.queryPool, table, { ...scan, limit }) }
  }
  const measureLimit = async (scan: IdScan) => {
    const sizes = await measureScan(db.queryPool, table, scan, select)
    const [first] = sizes
    if (first && first.bytes > maxBytes) throw createExportTooLargeError(model, first.id)
    return Math.min(scan.limit, countFirstSlice(sizes))
  }
  let maxRows = FIRST_PAGE_ROWS
  let next: Promise<ExportPage> | undefined = readPage(0, maxRows)
  while (next) {
    const read: ExportPage = await next
    const { page, limit } = read
    const last: WireRecord | undefined = page.at(-1)
    const isEnd = !last || page.length < limit
    maxRows = Math.min(maxRows * 2, MAX_PAGE_ROWS)
    next = isEnd ? undefined : readPage(last.id, maxRows)
    // A consumer that stops here never awaits the next page.
    next?.catch(() => undefined)
    yield page
  }
}

function createExportTooLargeError({ name }: Model, id: number): VersoError {
  const message = `${name} ${id} is larger than a response can be: omit long fields and lists from "fields"; nothing was changed`
  return new VersoError('too-large', message)
}

interface ExportPage {
  readonly page: readonly WireRecord[]
  /** Number of requested rows. */
  readonly limit: number
}
