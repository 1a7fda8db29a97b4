// A client that follows `next` from page to page.
import type { FindQuery } from '../src/model/query/search.js'
import type { Page, Records } from '../src/wire.js'

/** Yields pages up to the last one, or `most` pages if paging does not end. */
export async function* pagesOf(
  records: Records,
  model: string,
  query: FindQuery,
  most = 1_000,
): AsyncGenerator<Page> {
  let next: Page['next'] | Record<string, never> = {}
  for (let number = 0; number < most && next; number++) {
    const page: Page = await records.find(model, { ...query, ...next })
    yield page
    next = page.next
  }
}

export async function idsByWalking(
  records: Records,
  model: string,
  query: FindQuery,
  most?: number,
): Promise<number[]> {
  const ids: number[] = []
  for await (const { data } of pagesOf(records, model, query, most)) ids.push(...data.map(({ id }) => id))
  return ids
}
