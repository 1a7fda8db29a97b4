// The state of a list. Page, order, filter, search words and columns are in the address, so that a link or the way back shows the same list.
import { useListController } from 'ra-core'
import { useMemo } from 'react'
import { useSearchParams } from 'react-router'
import type { FieldInfo, ModelInfo } from '../service/model-info.js'
import { chooseColumns, listReadFields } from './columns.js'
import { joinFilters, listFilters, type FilterObject } from './conditions.js'
import { useShownRows, type Row, type ShownRows } from './use-shown-rows.js'

const DEFAULT_PER_PAGE = 25
/** The default order of the service, in which every page takes the same time. */
const DEFAULT_SORT = { field: '', order: 'ASC' } as const
const COLUMNS = 'columns'

export interface ListSort {
  readonly field: string
  readonly order: 'ASC' | 'DESC'
}

export interface RecordList extends ShownRows {
  readonly model: ModelInfo
  readonly columns: readonly FieldInfo[]
  /** Undefined means the default columns. */
  readonly setColumns: (names: readonly string[] | undefined) => void
  readonly words: string
  readonly setWords: (words: string) => void
  readonly filters: readonly FilterObject[]
  readonly setFilters: (filters: readonly FilterObject[]) => void
  readonly clearFilter: () => void
  readonly sort: ListSort
  readonly setSort: (sort: ListSort) => void
  readonly page: number
  readonly setPage: (page: number) => void
  readonly perPage: number
  readonly setPerPage: (perPage: number) => void
  /** Undefined while the first page is read. */
  readonly total: number | undefined
  /** The whole filter, as the data provider takes it. */
  readonly filter: FilterObject
  /** Differs between lists of other pages, filters, orders or columns. */
  readonly key: string
  /** The rows are those of another page or filter, until this one is read. */
  readonly isPrevious: boolean
  readonly isFetching: boolean
  readonly error: Error | null
  readonly refetch: () => void
}

export function useRecordList(model: ModelInfo): RecordList {
  const [parameters, setParameters] = useSearchParams()
  const names = parameters.get(COLUMNS)
  const columns = useMemo(() => chooseColumns(model, names), [model, names])
  const fields = useMemo(() => listReadFields(columns), [columns])
  const controller = useListController<Row>({
    resource: model.name,
    disableAuthentication: true,
    storeKey: false,
    perPage: DEFAULT_PER_PAGE,
    sort: DEFAULT_SORT,
    exporter: false,
    // The page shows errors itself.
    queryOptions: { meta: { fields }, onError: () => undefined },
  })
  const {
    data,
    total,
    error,
    isFetching = false,
    isPlaceholderData,
    page,
    perPage,
    sort,
    setFilters,
  } = controller
  const filter = readFilter(controller.filterValues)
  const isPrevious = data === undefined || isPlaceholderData === true
  const key = JSON.stringify([page, perPage, sort, filter, fields])
  const shown = useShownRows({ list: key, rows: isPrevious ? undefined : data, isFetching })
  const words = typeof filter['q'] === 'string' ? filter['q'] : ''
  const filters = listFilters(filter)
  return {
    ...shown,
    model,
    columns,
    setColumns: (chosen) => setParameters((before) => replaceColumns(before, chosen), { replace: true }),
    words,
    setWords: (changed) => setFilters(joinFilters(changed, filters)),
    filters,
    setFilters: (changed) => setFilters(joinFilters(words, changed)),
    clearFilter: () => setFilters({}),
    sort,
    setSort: controller.setSort,
    page,
    setPage: controller.setPage,
    perPage,
    setPerPage: controller.setPerPage,
    total,
    filter,
    key,
    isPrevious,
    isFetching,
    error: error ?? null,
    refetch: () => void controller.refetch(),
  }
}

function replaceColumns(parameters: URLSearchParams, names: readonly string[] | undefined): URLSearchParams {
  const changed = new URLSearchParams(parameters)
  if (names === undefined || names.length === 0) changed.delete(COLUMNS)
  else changed.set(COLUMNS, names.join(','))
  return changed
}

/** Somebody may have written the address. */
function readFilter(values: unknown): FilterObject {
  return typeof values === 'object' && values !== null && !Array.isArray(values)
    ? (values as FilterObject)
    : {}
}
