// A history of large changes has pages limited by their size; `Link` leads through all of them.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { onEngineOfTier, PASSWORD, startService, USERNAME, type Service } from '../targets.js'

const MODEL = 'test.Everything'
const UPDATES = 6

interface Body {
  readonly total: number
  readonly offset: number
  readonly data: readonly { readonly version: number }[]
}

onEngineOfTier((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  test('following the next links of a history shows every change once, the newest first', async () => {
    const client = await HttpClient.login(service.url, USERNAME, PASSWORD)
    const { id } = (await client.create(MODEL, { label: 'large' })).data
    for (let version = 0; version < UPDATES; version++)
      await client.update(MODEL, id, { version, note: String(version).repeat(900_000) })
    const versions: number[] = []
    let pages = 0
    for (let path: string | undefined = `/ws/rest/${MODEL}/${id}/history?limit=100`; path; pages++) {
      const response = await client.request('GET', path)
      const { total, offset, data } = (await response.json()) as Body
      expect([total, offset]).toEqual([UPDATES + 1, versions.length])
      versions.push(...data.map(({ version }) => version))
      const next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
      path = next === undefined ? undefined : next.replace(service.url, '')
    }
    expect(versions).toEqual([6, 5, 4, 3, 2, 1, 0])
    expect(pages).toBeGreaterThan(1)
  })
})
