// Builds responses about records: pages, single records, write results, and their headers.
import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import type { Model } from '../../model/definition/model.js'
import type { AnswerPage } from '../../service/context/answer-page.js'
import type { FoundRecord } from '../../store/sql/found.js'
import { StagedFile } from '../../store/engine/staging.js'
import type { HistoryPage, NextPage, Page, WireRecord, WriteResult } from '../../wire.js'
import type { QueryParameters } from '../request/parameters.js'
import type { HttpSettings } from '../settings.js'
import { StagedBody, type ResponseBody } from '../response/response-buffer.js'
import { REPLAYED_HEADER, sendJson, setHeader, type SentReply } from '../response/send.js'

export function sendPage(reply: FastifyReply, { offset, total, seq, data }: Page | HistoryPage): SentReply {
  setHeader(reply, 'x-commit-seq', String(seq))
  return sendJson(reply, JSON.stringify({ status: 0, offset, total, data }))
}

/** Sends a page whose records are JSON text. */
export function sendJsonPage(reply: FastifyReply, page: AnswerPage): SentReply {
  setHeader(reply, 'x-commit-seq', String(page.seq))
  return sendJson(reply, buildPageBody(page))
}

/** Sends a page with its links. If the query is too long for a link with the cursor, the cursor has a header of its own. */
export function sendLinkedPage(reply: FastifyReply, page: AnswerPage, links: string): SentReply {
  if (links !== '') setHeader(reply, 'link', links)
  const { after } = page.next ?? {}
  if (after !== undefined && !links.includes('&after=')) setHeader(reply, 'x-next-after', after)
  return sendJsonPage(reply, page)
}

function buildPageBody({ offset, total, json }: AnswerPage): ResponseBody {
  const shownTotal = total === undefined ? '' : `"total":${total},`
  const start = `{"status":0,"offset":${offset},${shownTotal}"data":[`
  if (typeof json === 'string') return `${start}${json}]}`
  if (json instanceof StagedFile) return new StagedBody(json, start, ']}')
  return Buffer.concat([Buffer.from(start), json, PAGE_BODY_END])
}

const PAGE_BODY_END = Buffer.from(']}')

/** Sends the result of a write, and whether an idempotency key replayed it. */
export function sendWriteResult(
  reply: FastifyReply,
  { data, replayed }: WriteResult<readonly unknown[]>,
  envelopeFields: object = {},
): SentReply {
  if (replayed) setHeader(reply, REPLAYED_HEADER, 'true')
  return sendJson(reply, JSON.stringify({ status: 0, ...envelopeFields, data }), true)
}

export function sendRecord(reply: FastifyReply, { data, replayed }: WriteResult<WireRecord>): SentReply {
  const [body, etag] = buildRecordBody(data)
  if (replayed) setHeader(reply, REPLAYED_HEADER, 'true')
  setHeader(reply, 'etag', etag)
  return sendJson(reply, body, true)
}

/** Sends the result of a create, and the path of the new record as `Location`. A path is right behind any proxy; an absolute URL may not be. */
export function sendCreated(
  reply: FastifyReply,
  modelPath: string,
  created: WriteResult<WireRecord>,
): SentReply {
  setHeader(reply, 'location', `${modelPath}/${created.data.id}`)
  return sendRecord(reply, created)
}

export function buildModelPath({ basePath }: Pick<HttpSettings, 'basePath'>, { name }: Model): string {
  return `${basePath}/ws/rest/${name}`
}

export function buildRecordBody(record: WireRecord): [body: string, etag: string] {
  return wrapRecordJson({ version: record.version, json: JSON.stringify(record) })
}

/** Returns the body of one record and its ETag: the version for `If-Match`, and a hash of the body for `If-None-Match`. */
export function wrapRecordJson({
  version,
  json,
}: Pick<FoundRecord, 'version' | 'json'>): [body: string, etag: string] {
  const body = `{"status":0,"data":[${json}]}`
  return [body, `"${version}.${hash('sha256', body, 'base64url').slice(0, 16)}"`]
}

/** Query parameters that every page link repeats. */
const LINK_PARAMETERS = ['fields', 'sortBy', 'filter', 'q', 'archived', 'asOf', 'count']

/** Many clients and proxies reject headers longer than 4 or 8 KiB. */
export const LINK_LIMITS = { allBytes: 4_096, nextBytes: 8_192 }

/**
 * Builds the `Link` header with the first, previous, next and last page. Without a total the last page is unknown. If the query is too long for all of them, the header has only the
 * next page, then the next page without its cursor, then nothing.
 */
export function buildPageLinks(
  path: string,
  { offset, limit, total, next }: Pick<AnswerPage, 'offset' | 'limit' | 'total' | 'next'>,
  query: QueryParameters,
  { allBytes, nextBytes } = LINK_LIMITS,
): string {
  if (limit === 0) return ''
  let repeatedQuery = ''
  for (const name of LINK_PARAMETERS) {
    const value = query[name]
    if (typeof value === 'string') repeatedQuery += `&${name}=${encodeURIComponent(value)}`
  }
  const linkTo = (rel: string, start: NextPage) => {
    const after = start.after === undefined ? '' : `&after=${start.after}`
    return `<${path}?offset=${start.offset}&limit=${limit}${after}${repeatedQuery}>; rel="${rel}"`
  }
  const last = total === undefined ? undefined : Math.max(0, Math.floor((total - 1) / limit) * limit)
  const prev = Math.min(Math.max(0, offset - limit), last ?? Infinity)
  const all = [
    linkTo('first', { offset: 0 }),
    ...(offset > 0 ? [linkTo('prev', { offset: prev })] : []),
    ...(next ? [linkTo('next', next)] : []),
    ...(last === undefined ? [] : [linkTo('last', { offset: last })]),
  ].join(', ')
  if (all.length <= allBytes) return all
  const shorter = next ? [linkTo('next', next), linkTo('next', { offset: next.offset })] : []
  return shorter.find((link) => link.length <= nextBytes) ?? ''
}
