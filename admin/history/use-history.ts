// The changes of a record, the newest first, page by page. Changes that others make arrive while the page is open.
import { useInfiniteQuery, useQuery, type InfiniteData } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useState } from 'react'
import type { Change } from 'verso-records/client'
import { queryClient } from '../service/data.js'
import { subscribeToChanges } from '../service/live.js'
import { client } from '../service/session.js'

const PAGE_SIZE = 20

interface HistoryPart {
  readonly data: readonly Change[]
  readonly total: number
}

export interface RecordHistory {
  readonly model: string
  readonly id: number
  readonly changes: readonly Change[]
  /** The number of all changes, also of those that are not loaded. */
  readonly total: number
  readonly isLoading: boolean
  readonly error: Error | null
  readonly hasMore: boolean
  readonly isLoadingMore: boolean
  readonly loadMore: () => void
  /** Changes that have arrived and are not among `changes` yet. */
  readonly waiting: readonly Change[]
  readonly showWaiting: () => void
}

/** Not below the name of the model: each change of the model would load all pages again. */
function buildKey(model: string, id: number): readonly unknown[] {
  return ['verso', 'history', model, id]
}

/** Reads the loaded changes of a record again. */
export async function refreshHistory(model: string, id: number): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: buildKey(model, id) })
}

export function useHistory(model: string, id: number): RecordHistory {
  const query = useInfiniteQuery({
    queryKey: buildKey(model, id),
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }): Promise<HistoryPart> =>
      client.model(model).history(id, { offset: pageParam, limit: PAGE_SIZE }, { signal }),
    getNextPageParam: ({ data, total }, _pages, offset) => {
      const next = offset + data.length
      return next < total && data.length > 0 ? next : undefined
    },
  })
  const pages = query.data?.pages
  const changes = useMemo(() => joinPages(pages ?? []), [pages])
  const newest = changes[0]?.seq ?? 0
  const arrived = useArrivedChanges(model, id)
  const waiting = useMemo(() => arrived.filter(({ seq }) => seq > newest), [arrived, newest])
  const showWaiting = useCallback(() => {
    queryClient.setQueryData<InfiniteData<HistoryPart, number>>(
      buildKey(model, id),
      (data) => data && prepend(data, waiting),
    )
  }, [model, id, waiting])
  return {
    model,
    id,
    changes,
    total: Math.max(pages?.[0]?.total ?? 0, changes.length),
    isLoading: query.isPending,
    error: query.error,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void query.fetchNextPage(),
    waiting,
    showWaiting,
  }
}

/** Newer changes move older ones to later pages, so that a change may be in two pages. */
function joinPages(pages: readonly HistoryPart[]): readonly Change[] {
  const bySeq = new Map(pages.flatMap(({ data }) => data.map((change) => [change.seq, change])))
  return [...bySeq.values()].sort((a, b) => b.seq - a.seq)
}

function prepend(
  data: InfiniteData<HistoryPart, number>,
  waiting: readonly Change[],
): InfiniteData<HistoryPart, number> {
  const [first, ...others] = data.pages
  if (!first) return data
  const longer = { data: [...waiting, ...first.data], total: first.total + waiting.length }
  return { ...data, pages: [longer, ...others] }
}

/** The newest first. */
function useArrivedChanges(model: string, id: number): readonly Change[] {
  const [arrived, setArrived] = useState<readonly Change[]>([])
  useEffect(() => {
    setArrived([])
    return subscribeToChanges((changes) => {
      const own = changes.filter((change) => change.model === model && change.id === id).reverse()
      if (own.length > 0) setArrived((others) => [...own, ...others])
    })
  }, [model, id])
  return arrived
}

/** The change at a position of the history, 0 for the newest. It may be far away from the changes that are loaded. */
export function useChangeAt(
  { model, id, changes, total }: RecordHistory,
  offset: number,
): Change | undefined {
  const loaded = changes[offset]
  const start = offset - (offset % PAGE_SIZE)
  const { data } = useQuery({
    queryKey: [...buildKey(model, id), 'at', total, start],
    queryFn: () => fetchPart({ model, id, total }, start),
    enabled: loaded === undefined && offset < total,
    staleTime: Infinity,
  })
  return loaded ?? data?.[offset - start]
}

/** Reads changes at an offset that counts only `total` changes: newer ones that are not shown yet move the others. */
async function fetchPart(
  { model, id, total }: Pick<RecordHistory, 'model' | 'id' | 'total'>,
  start: number,
): Promise<readonly Change[]> {
  const calls = client.model(model)
  const first = await calls.history(id, { offset: start, limit: PAGE_SIZE })
  const newer = first.total - total
  return newer <= 0 ? first.data : (await calls.history(id, { offset: start + newer, limit: PAGE_SIZE })).data
}
