// Sends a request to two databases and compares the whole answers.
import { JSON_BODY, send, type Answer } from '../wire/exchange.js'
import type { Probe } from './probes.js'
import { chunks } from './read-cells.js'
import type { HiddenValuesFixture } from './hidden-values-fixture.js'

const AT_ONCE = 12
/** Headers that differ in every answer. */
const VARYING_HEADERS = ['date', 'x-request-id']

export interface Difference {
  readonly probe: Probe
  readonly left: string
  readonly right: string
}

/** The probes whose answers differ between the two databases for this role. */
export async function findDifferences(
  left: HiddenValuesFixture,
  right: HiddenValuesFixture,
  role: string,
  probes: readonly Probe[],
): Promise<readonly Difference[]> {
  const differences: Difference[] = []
  const both = async (probe: Probe) => {
    const [one, other] = await Promise.all([sendProbe(left, role, probe), sendProbe(right, role, probe)])
    if (one !== other) differences.push({ probe, left: one, right: other })
  }
  const reading = probes.filter(({ writes }) => writes !== true)
  for (const batch of chunks(reading, AT_ONCE)) await Promise.all(batch.map(both))
  for (const probe of probes) if (probe.writes === true) await both(probe)
  return differences
}

export function describeDifference({ probe: { method, path, body }, left, right }: Difference): string {
  const request = `${method} ${decodeURIComponent(path)} ${body === undefined ? '' : JSON.stringify(body)}`
  return [request, left, right].join('\n   ')
}

async function sendProbe({ url, cookies }: HiddenValuesFixture, role: string, probe: Probe): Promise<string> {
  const { method, path, body, headers } = probe
  const cookie = cookies.get(role) ?? ''
  const json = body === undefined ? {} : { body: JSON.stringify(body) }
  const answer = await send(url, { method, path, headers: { cookie, ...JSON_BODY, ...headers }, ...json })
  return normalize(answer, url)
}

function normalize({ status, headers, text }: Answer, url: string): string {
  const kept = Object.entries(headers).filter(([name]) => !VARYING_HEADERS.includes(name))
  const body = text.replace(/"requestId":"[^"]*"/, '"requestId":""')
  return `${status} ${JSON.stringify(kept)} ${body}`.replaceAll(new URL(url).host, 'host')
}
