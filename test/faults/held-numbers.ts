// Clients that hold versions, ETags and cursors from before a restore, and what the restored service answers to them.
import { expect } from 'vitest'
import type { WireRecord } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { PASSWORD, USERNAME, type Service } from '../targets.js'

const MODEL = 'crm.Contact'
const PATH = `/ws/rest/${MODEL}`

/** One version of a record that a client has seen. */
interface HeldVersion {
  readonly id: number
  readonly version: number
  readonly etag: string
  /** The values; undefined for a version that deleted the record. */
  readonly content: string | undefined
}

/** Everything that clients have seen of a service. */
export interface HeldNumbers {
  readonly versions: HeldVersion[]
  readonly cursors: Set<number>
}

export function holdNothing(): HeldNumbers {
  return { versions: [], cursors: new Set() }
}

export async function logIn(service: Service): Promise<HttpClient> {
  return HttpClient.login(service.url, USERNAME, PASSWORD)
}

/** Creates, updates, deletes and restores records at random, and keeps every number that the service answers. */
export async function writeAtRandom(
  client: HttpClient,
  random: () => number,
  steps: number,
  held: HeldNumbers,
): Promise<void> {
  const current = new Map<number, number>()
  const deleted = new Map<number, number>()
  for (const { id, version } of (await readAll(client)).data) current.set(id, version)
  for (let step = 0; step < steps; step++) {
    held.cursors.add((await readAll(client)).seq)
    const [id, version] = pick(random, current) ?? []
    const choice = random()
    if (id === undefined || version === undefined || choice < 0.3) {
      const record = await save(client, held, 'PUT', PATH, { firstName: `new ${step} ${random()}` })
      current.set(record.id, record.version)
    } else if (choice < 0.8) {
      const data = { version, firstName: `changed ${step} ${random()}` }
      current.set(id, (await save(client, held, 'POST', `${PATH}/${id}`, data)).version)
    } else if (choice < 0.9) {
      const response = await client.request('DELETE', `${PATH}/${id}`)
      expect(response.status).toBe(200)
      current.delete(id)
      deleted.set(id, version + 1)
      held.versions.push({ id, version: version + 1, etag: '', content: undefined })
    } else {
      const [back, at] = pick(random, deleted) ?? []
      if (back === undefined || at === undefined) continue
      const record = await save(client, held, 'POST', `${PATH}/${back}/revert`, { version: at, to: at - 1 })
      deleted.delete(back)
      current.set(back, record.version)
    }
  }
}

async function save(
  client: HttpClient,
  held: HeldNumbers,
  method: string,
  path: string,
  data: object,
): Promise<WireRecord> {
  const response = await client.request(method, path, { data })
  expect(response.status).toBe(200)
  const [{ id }] = ((await response.json()) as { data: [WireRecord] }).data
  const read = await client.request('GET', `${PATH}/${id}`)
  const [record] = ((await read.json()) as { data: [WireRecord] }).data
  const etag = read.headers.get('etag') ?? ''
  held.versions.push({ id, version: record.version, etag, content: toContent(record) })
  return record
}

function pick(random: () => number, map: ReadonlyMap<number, number>): [number, number] | undefined {
  return [...map][Math.floor(random() * map.size)]
}

/** The values that the writes above change. */
function toContent({ firstName }: WireRecord): string {
  return JSON.stringify(firstName)
}

async function readAll(client: HttpClient): Promise<{ data: WireRecord[]; seq: number }> {
  const response = await client.request('GET', `${PATH}?limit=1000`)
  const { data } = (await response.json()) as { data: WireRecord[] }
  return { data, seq: Number(response.headers.get('x-commit-seq')) }
}

/** Uses every held number against the service. Returns each use that matched other content than the one that was held. */
export async function findFalseMatches(client: HttpClient, held: HeldNumbers): Promise<string[]> {
  const found: string[] = []
  const { data, seq } = await readAll(client)
  const records = new Map(data.map((record) => [record.id, record]))
  if ((await client.request('GET', `/ws/changes?since=${seq}`)).status !== 200)
    found.push(`the X-Commit-Seq ${seq} of the restored service is refused`)
  for (const since of held.cursors) {
    const { status } = await client.request('GET', `/ws/changes?since=${since}`)
    if (status !== 410) found.push(`since=${since} is ${status}`)
  }
  for (const each of held.versions) found.push(...(await findMatches(client, each, records.get(each.id))))
  return found
}

async function findMatches(
  client: HttpClient,
  { id, version, etag, content }: HeldVersion,
  record: WireRecord | undefined,
): Promise<string[]> {
  const what = `${id} at version ${version}`
  const isOther = record && toContent(record) !== content
  const past = await client.request('GET', `${PATH}/${id}/history/${version}`)
  const [old] = past.status === 200 ? ((await past.json()) as { data: [WireRecord] }).data : []
  const statuses: Record<string, Response> = {}
  if (etag !== '' && isOther)
    statuses['If-None-Match'] = await client.request('GET', `${PATH}/${id}`, undefined, {
      'if-none-match': etag,
    })
  // Updates that match raise the version, and so the next held version of the record would match as well.
  if (record?.version !== version || isOther) {
    const data = { firstName: 'from before' }
    statuses['update'] = await client.request('POST', `${PATH}/${id}`, { data: { version, ...data } })
    statuses['If-Match'] = await client.request(
      'POST',
      `${PATH}/${id}`,
      { data },
      { 'if-match': `"${version}"` },
    )
    statuses['merge'] = await client.request(
      'POST',
      `${PATH}/${id}`,
      { data: { version, ...data } },
      { prefer: 'merge=fields' },
    )
    if (version > 0)
      statuses['revert'] = await client.request('POST', `${PATH}/${id}/revert`, { data: { version, to: 0 } })
    statuses['delete'] = await client.request('DELETE', `${PATH}/${id}?version=${version}`)
  }
  return [
    ...(old && toContent(old) !== content ? [`the history has other content for ${what}`] : []),
    ...Object.entries(statuses)
      .filter(([name, { status }]) =>
        name === 'If-None-Match' ? status === 304 : ![404, 409, 412, 422].includes(status),
      )
      .map(([name, { status }]) => `${name} of ${what} is ${status}`),
  ]
}
