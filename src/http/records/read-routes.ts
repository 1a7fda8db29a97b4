import type { FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { PermissionAction } from '../../model/access/permissions.js'
import { FIND_PARAMETERS } from '../../model/query/search.js'
import { isObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { listPermittedActions } from '../../service/access/permission-checks.js'
import { stringifyRecord } from '../../service/context/answer-limits.js'
import {
  findPageJson,
  readRecordJson,
  searchPageJson,
  recordsForPrincipal,
} from '../../service/records/records.js'
import { dataOf } from '../request/bodies.js'
import { callerOf } from '../route/guard.js'
import type { Habits } from '../compat/protocol.js'
import { DETAILS, PERMS, READ, readWith } from '../request/parameters.js'
import { matchesAny, print, printBody, printPage, printPageBody } from './record-answers.js'
import { idIn, idOf, modelOf, wantedIn, type Query } from '../route/record-request.js'
import { sendJson, type Handler } from '../route/resource.js'

type Verb = 'find' | 'search' | 'read' | 'fetch' | 'copy' | 'details' | 'verify' | 'perms'

/** The words of the protocol. */
const WORDS: Readonly<Record<PermissionAction, string>> = {
  read: 'READ',
  create: 'CREATE',
  update: 'WRITE',
  remove: 'REMOVE',
  export: 'EXPORT',
}

function refuseUnless(words: readonly string[], action: unknown): void {
  const known = Object.values(WORDS)
  const asked = typeof action === 'string' ? action.toUpperCase() : ''
  const word = asked === 'UPDATE' ? WORDS.update : asked
  if (!known.includes(word))
    throw new VersoError('bad-request', `action must be one of ${known.join(', ').toLowerCase()}`)
  if (!words.includes(word)) throw new VersoError('forbidden', `You may not ${word.toLowerCase()} here`)
}

export function makeReading(app: App, habits: Habits, basePath: string): Record<Verb, Handler> {
  const records = (request: FastifyRequest) => recordsForPrincipal(app, callerOf(request))
  return {
    find: async (request, reply) => {
      const model = modelOf(app, request)
      const query = habits.parameters(request.query as Query, FIND_PARAMETERS)
      const page = await findPageJson(app, callerOf(request), model, query)
      const [body, headers] = printPage(`${basePath}/ws/rest/${model.name}`, page, query)
      return sendJson(reply.headers(headers), body)
    },
    search: async (request, reply) => {
      const model = modelOf(app, request)
      const asked = habits.search(callerOf(request), model, request.body ?? undefined)
      const page = await searchPageJson(app, callerOf(request), model, asked)
      return sendJson(reply.header('x-commit-seq', page.seq), printPageBody(page))
    },
    fetch: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const { body } = request
      if (body !== undefined && body !== null && !isObject(body))
        throw new VersoError('bad-request', 'The body must be a JSON object with "fields" or "related"')
      const wanted = habits.wanted(callerOf(request), model, wantedIn(body) ?? {})
      const [text, etag] = print(await records(request).fetch(model.name, id, wanted))
      return sendJson(reply.header('etag', etag), text)
    },
    read: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const { was, now } = await readWith(request, habits, READ, async ({ asOf }) =>
        asOf === undefined
          ? { now: await readRecordJson(app, callerOf(request), model, id) }
          : { was: await records(request).readAt(model.name, id, asOf) },
      )
      if (!now) return sendJson(reply, stringifyRecord(app, { status: 0, data: [was] }))
      const [body, etag] = printBody(now)
      void reply.header('etag', etag)
      if (matchesAny(request.headers['if-none-match'], etag)) return reply.code(304).send()
      return sendJson(reply, body)
    },
    copy: async (request, reply) => {
      const model = modelOf(app, request)
      const copy = await records(request).copy(model.name, idOf(model, request))
      return sendJson(reply, stringifyRecord(app, { status: 0, data: [copy] }))
    },
    /** The name of a record, or another field of it. */
    details: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const record = await readWith(request, habits, DETAILS, async ({ name = model.nameField }) =>
        records(request).fetch(model.name, id, { fields: name === undefined ? [] : [name] }),
      )
      return sendJson(reply, print(record)[0])
    },
    /** What the caller may do with records of a model, or with one of them; or whether they may do one thing. */
    perms: async (request, reply) => {
      const model = modelOf(app, request)
      const data = await readWith(request, habits, PERMS, async ({ id, action }) => {
        const actions = await listPermittedActions(app, callerOf(request), model, idIn(model, id))
        const words = actions.map((each) => WORDS[each])
        if (action === undefined) return words
        refuseUnless(words, action)
        return []
      })
      return sendJson(reply, JSON.stringify({ status: 0, data }))
    },
    verify: async (request, reply) => {
      const model = modelOf(app, request)
      await records(request).verify(model.name, dataOf(request.body))
      return sendJson(reply, JSON.stringify({ status: 0, data: [] }))
    },
  }
}
