// Sends a request to two worlds and compares the whole answers.
import { JSON_BODY, send, type Answer } from '../wire/exchange.js'
import type { Probe } from './probes.js'
import { chunks } from './read-cells.js'
import type { HiddenValuesFixture } from './hidden-values-fixture.js'

const AT_ONCE = 12
/** Headers that differ in every answer. */
const OF_THE_MOMENT = ['date', 'x-request-id']

export interface Told {
  readonly probe: Probe
  readonly left: string
  readonly right: string
}

/** The probes whose answers differ between the two worlds for this role. */
export async function tellApart(
  left: HiddenValuesFixture,
  right: HiddenValuesFixture,
  role: string,
  probes: readonly Probe[],
): Promise<readonly Told[]> {
  const told: Told[] = []
  const both = async (probe: Probe) => {
    const [one, other] = await Promise.all([ask(left, role, probe), ask(right, role, probe)])
    if (one !== other) told.push({ probe, left: one, right: other })
  }
  const reading = probes.filter(({ writes }) => writes !== true)
  for (const batch of chunks(reading, AT_ONCE)) await Promise.all(batch.map(both))
  for (const probe of probes) if (probe.writes === true) await both(probe)
  return told
}

export function printed({ probe: { method, path, body }, left, right }: Told): string {
  const request = `${method} ${decodeURIComponent(path)} ${body === undefined ? '' : JSON.stringify(body)}`
  return [request, left, right].join('\n   ')
}

async function ask({ url, cookies }: HiddenValuesFixture, role: string, probe: Probe): Promise<string> {
  const { method, path, body, headers } = probe
  const cookie = cookies.get(role) ?? ''
  const json = body === undefined ? {} : { body: JSON.stringify(body) }
  const answer = await send(url, { method, path, headers: { cookie, ...JSON_BODY, ...headers }, ...json })
  return wholeOf(answer, url)
}

function wholeOf({ status, headers, text }: Answer, url: string): string {
  const told = Object.entries(headers).filter(([name]) => !OF_THE_MOMENT.includes(name))
  const body = text.replace(/"requestId":"[^"]*"/, '"requestId":""')
  return `${status} ${JSON.stringify(told)} ${body}`.replaceAll(new URL(url).host, 'host')
}
