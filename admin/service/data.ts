// The data provider, and the cache of what it has read.
import { QueryClient, type Query } from '@tanstack/react-query'
import { createDataProvider } from 'verso-records/react-admin'
import { subscribeToChanges, subscribeToGaps } from './live.js'
import { client, session } from './session.js'

/** The first part of the keys of queries that are no records. */
export const DESCRIPTIONS = 'verso'

export const dataProvider = createDataProvider(client)

/** The stream of changes tells what is outdated, so nothing is read again only because a window gets the focus. The client retries itself. */
export const queryClient = new QueryClient({
  defaultOptions: { queries: { refetchOnWindowFocus: false, retry: false, staleTime: 2_000 } },
})

/** Models whose lists have changed while a list was read. An invalidation would abort that read, again and again. */
const waiting = new Set<string>()

/** Descriptions of models stay as they are until the page is loaded again. */
async function refreshAll(): Promise<void> {
  await queryClient.invalidateQueries({
    predicate: ({ queryKey: [first, second], state }) =>
      first !== DESCRIPTIONS || !['model', 'models'].includes(String(second)) || state.data === undefined,
  })
}

function isOfModel({ queryKey: [model] }: Pick<Query, 'queryKey'>, models: ReadonlySet<string>): boolean {
  return typeof model === 'string' && models.has(model)
}

function refresh(models: ReadonlySet<string>): void {
  for (const model of models) {
    if (queryClient.isFetching({ queryKey: [model] }) > 0) waiting.add(model)
    else void queryClient.invalidateQueries({ queryKey: [model] })
  }
}

/** Reads lists and records again that the changes concern. */
export function followChangesInCache(): void {
  subscribeToChanges((changes) => refresh(new Set(changes.map(({ model }) => model))))
  subscribeToGaps(() => void refreshAll())
  queryClient.getQueryCache().subscribe(({ type, query }) => {
    if (type !== 'updated' || waiting.size === 0 || query.state.fetchStatus !== 'idle') return
    if (!isOfModel(query, waiting)) return
    const models = new Set(waiting)
    waiting.clear()
    setTimeout(() => refresh(models))
  })
  let previous = session.value.status
  session.subscribe(() => {
    const { status } = session.value
    // What failed while the session was over is read now. Nothing of one person stays for the next one.
    if (status === 'signed-in' && previous === 'ended') void refreshAll()
    if (status === 'signed-out') queryClient.clear()
    previous = status
  })
}
