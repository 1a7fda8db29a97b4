// Records and pages on the short way. What is not found there is looked for by the routes, which say what is wrong.
import { VersoError } from '../errors.js'
import { findByQuery, readRecord } from '../service/records/read.js'
import type { Principal } from '../service/context/principal.js'
import { requireKnownModel } from '../service/access/permission-checks.js'
import { wrapRecordJson, buildPageResponse } from './records/record-responses.js'
import type { QueryParameters } from './request/parameters.js'
import {
  callerKnown,
  ForTheRoutes,
  ID,
  LIST,
  listed,
  RECORD,
  type FastPathRequest,
  type FastPathParts,
  type FastPathReader,
} from './short-way.js'
import { createContext } from '../service/context/context.js'

const PAGE =
  /^(?:(offset|limit)=([0-9]{1,15}))(?:&(offset|limit)=([0-9]{1,15})(?:&after=([A-Za-z0-9_-]+))?)?$/

export function shortReads(parts: Pick<FastPathParts, 'app' | 'settings' | 'checkHost'>): FastPathReader {
  const { app, settings } = parts
  const { basePath } = settings
  const prefix = `${basePath}/ws/rest/`
  const [recordRoute, listRoute] = [basePath + RECORD, basePath + LIST]
  const readOne = (principal: Principal, name: string, id: number): FastPathRequest => {
    const model = requireKnownModel(app, principal, name)
    return {
      principal,
      model,
      route: recordRoute,
      answer: async () => {
        const [body, etag] = wrapRecordJson(
          await readRecord(createContext(app, principal), model, id).catch(byTheRoutes),
        )
        return [body, ['etag', etag]]
      },
    }
  }
  const readPage = (principal: Principal, name: string, query: QueryParameters): FastPathRequest => {
    const model = requireKnownModel(app, principal, name)
    return {
      principal,
      model,
      route: listRoute,
      answer: async () => {
        const page = await findByQuery(createContext(app, principal), model, query).catch(byTheRoutes)
        const [body, headers] = buildPageResponse(prefix + model.name, page, query)
        return [body, listed(headers)]
      },
    }
  }
  return (request) => {
    const { method, url = '', headers } = request
    if (method !== 'GET' || !url.startsWith(prefix) || headers['content-length'] !== undefined)
      return undefined
    const end = url.indexOf('/', prefix.length)
    const question = end < 0 ? url.indexOf('?', prefix.length) : -1
    const id = end < 0 ? '' : url.slice(end + 1)
    const page = question < 0 ? null : PAGE.exec(url.slice(question + 1))
    if (!ID.test(id) && !page) return undefined
    const principal = callerKnown(parts, request)
    if (!principal) return undefined
    if (!page) return readOne(principal, url.slice(prefix.length, end), Number(id))
    const [, first = '', one, second, other, after] = page
    if (first === second) return undefined
    const place = second === undefined ? { [first]: one } : { [first]: one, [second]: other }
    const query = after === undefined ? place : { ...place, after }
    return readPage(principal, url.slice(prefix.length, question), query)
  }
}

/** Large answers are not looked for a second time. */
function byTheRoutes(error: unknown): never {
  throw error instanceof VersoError && error.kind === 'too-large' ? error : new ForTheRoutes()
}
