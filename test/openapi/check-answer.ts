// Compares an answer with the document: its status, content type, headers and body.
import type { ApiDocument, Call } from './api-document.js'

/** Headers whose presence the document must announce. Those of every answer are left out. */
const ANNOUNCED_HEADERS = [
  ...[
    'etag',
    'link',
    'location',
    'x-commit-seq',
    'x-next-after',
    'idempotency-replayed',
    'preference-applied',
  ],
  ...['set-cookie', 'x-csrf-token', 'content-disposition', 'content-range', 'accept-ranges'],
]

export interface ReceivedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export async function receive(response: Response): Promise<ReceivedAnswer> {
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Returns what the document does not say about the answer. */
export function findDifferences(api: ApiDocument, call: Call, answer: ReceivedAnswer): readonly string[] {
  const { operation } = call
  const documented = operation.responses[String(answer.status)]
  const id = `${operation.operationId} ${answer.status}`
  if (!documented) return [`${id}: the status is not documented: ${answer.text.slice(0, 300)}`]
  const announced = Object.keys(documented.headers ?? {}).map((name) => name.toLowerCase())
  const headers = ANNOUNCED_HEADERS.filter((name) => answer.headers.has(name) && !announced.includes(name))
  const problems = headers.map((name) => `${id}: the header ${name} is not documented`)
  if (!answer.headers.has('x-request-id')) problems.push(`${id}: X-Request-Id is missing`)
  return [...problems, ...findBodyDifferences(api, id, documented.content ?? {}, answer)]
}

function findBodyDifferences(
  api: ApiDocument,
  id: string,
  content: Readonly<Record<string, { readonly schema: Readonly<Record<string, unknown>> }>>,
  { headers, text }: ReceivedAnswer,
): readonly string[] {
  const type = headers.get('content-type')?.split(';')[0]
  if (text === '') return Object.keys(content).length > 0 && !('*/*' in content) ? [`${id}: no body`] : []
  const media = (type === undefined ? undefined : content[type]) ?? content['*/*']
  if (!media) return [`${id}: the content type ${type ?? 'none'} is not documented`]
  if (!type?.endsWith('json')) return []
  return api.validate(media.schema, JSON.parse(text)).map((error) => `${id}: ${error}: ${text.slice(0, 300)}`)
}
