// Claims about answers and records that every storm makes.
import { restOf } from './aborts.js'
import type { Answer } from './exchange.js'
import { NOTES, requestBy, sendAlone, type Client } from './storm-service.js'

/** A way in which requests arrive or connections break. Returns the faults that a client would see; a right server has none. */
export type Scenario = (client: Client) => Promise<string[]>

export function cutRandomly(bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + Math.floor(Math.random() * 60)
    pieces.push(bytes.subarray(at, end))
    at = end
  }
  return pieces
}

export interface Write {
  readonly path: string
  readonly version: number
  readonly title: string
}

export function checkWritten({ text }: Answer, { path, version, title }: Write): string[] {
  const { data } = JSON.parse(text) as { data: { id: number; version: number; title: string }[] }
  const [record] = data
  const isRight =
    record && path.endsWith(`/${record.id}`) && record.version === version + 1 && record.title === title
  return isRight ? [] : [`the write of ${title} to ${path} is answered with ${text}`]
}

/** The version counts the acknowledged writes; each of them is in the history, under its version. */
export async function checkVersions(
  { service }: Client,
  path: string,
  acknowledged: readonly Write[],
  unknown: readonly string[] = [],
): Promise<string[]> {
  const titles = await service.readTitles(path)
  const faults: string[] = []
  for (const { version, title } of acknowledged)
    if (titles.get(version + 1) !== title) faults.push(`${path} lost ${title}, version ${version + 1}`)
  const known = new Set(acknowledged.map(({ title }) => title))
  const others = [...titles.values()].slice(1).filter((title) => !known.has(title))
  for (const title of others)
    if (!unknown.includes(title)) faults.push(`${path} has ${title}, which nobody sent`)
  const written = [...titles.values()].slice(1)
  if (new Set(written).size !== written.length) faults.push(`${path} was written twice: ${written.join()}`)
  return faults
}

/** Lets the bytes that were sent before reach the handlers: a later connection is answered after them. */
export async function waitForRequest(client: Client): Promise<void> {
  for (let times = 0; times < 3; times++)
    await sendAlone(client.url, requestBy(client, `GET ${NOTES}/999999`))
}

/** No request, byte or slot is left, and the server answers. */
export async function checkIdle(client: Client): Promise<string[]> {
  const left = await restOf(client.server)
  const faults = Object.keys(left).length > 0 ? [`the gauges are ${JSON.stringify(left)}`] : []
  const answer = await sendAlone(client.url, requestBy(client, `GET ${NOTES}/999999`))
  return answer?.status === 404
    ? faults
    : [...faults, `the server answers ${answer?.status ?? 'nothing'} afterwards`]
}
