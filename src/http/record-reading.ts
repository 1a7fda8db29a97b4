import type { FastifyRequest } from 'fastify'
import { Refusal } from '../errors.js'
import type { PermittedAction } from '../model/rights.js'
import { isObject } from '../model/value.js'
import type { App } from '../service/app.js'
import { permittedActions } from '../service/rights/permitted.js'
import { printedPage, printedRecord, recordsOf } from '../service/records.js'
import { dataOf } from './bodies.js'
import { callerOf } from './guard.js'
import type { Habits } from './habits.js'
import { matchesAny, print, printBody, printPage, sendPage } from './record-answers.js'
import { idIn, idOf, modelOf, refuseMisspelledAsOf, wantedIn, type Query } from './record-requests.js'
import { sendJson, type Handler } from './resource.js'

type Verb = 'find' | 'search' | 'read' | 'fetch' | 'copy' | 'details' | 'verify' | 'perms'

/** The words of the protocol. */
const WORDS: Readonly<Record<PermittedAction, string>> = {
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
    throw new Refusal('bad-request', `action must be one of ${known.join(', ').toLowerCase()}`)
  if (!words.includes(word)) throw new Refusal('forbidden', `You may not ${word.toLowerCase()} here`)
}

export function makeReading(app: App, habits: Habits, basePath: string): Record<Verb, Handler> {
  const records = (request: FastifyRequest) => recordsOf(app, callerOf(request))
  return {
    find: async (request, reply) => {
      const model = modelOf(app, request)
      refuseMisspelledAsOf(request)
      const page = await printedPage(app, callerOf(request), model, request.query as Query)
      const [body, headers] = printPage(`${basePath}/ws/rest/${model.name}`, page, request.query as Query)
      return sendJson(reply.headers(headers), body)
    },
    search: async (request, reply) => {
      const model = modelOf(app, request)
      const asked = habits.search(callerOf(request), model, request.body ?? undefined)
      return sendPage(reply, await records(request).search(model.name, asked.request, asked.options))
    },
    fetch: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const { body } = request
      if (body !== undefined && body !== null && !isObject(body))
        throw new Refusal('bad-request', 'The body must be a JSON object with "fields" or "related"')
      const wanted = habits.wanted(callerOf(request), model, wantedIn(body) ?? {})
      const [text, etag] = print(await records(request).fetch(model.name, id, wanted))
      return sendJson(reply.header('etag', etag), text)
    },
    read: async (request, reply) => {
      const model = modelOf(app, request)
      refuseMisspelledAsOf(request)
      const { asOf } = request.query as Query
      if (asOf !== undefined) {
        const was = await records(request).readAt(model.name, idOf(model, request), asOf)
        return sendJson(reply, JSON.stringify({ status: 0, data: [was] }))
      }
      const record = await printedRecord(app, callerOf(request), model, idOf(model, request))
      const [body, etag] = printBody(record)
      void reply.header('etag', etag)
      if (matchesAny(request.headers['if-none-match'], etag)) return reply.code(304).send()
      return sendJson(reply, body)
    },
    copy: async (request, reply) => {
      const model = modelOf(app, request)
      const copy = await records(request).copy(model.name, idOf(model, request))
      return sendJson(reply, JSON.stringify({ status: 0, data: [copy] }))
    },
    /** The name of a record, or another field of it. */
    details: async (request, reply) => {
      const model = modelOf(app, request)
      const id = idOf(model, request)
      const { name = model.nameField } = request.query as Query
      const fields = name === undefined ? [] : [name]
      const [body] = print(await records(request).fetch(model.name, id, { fields }))
      return sendJson(reply, body)
    },
    /** What the caller may do with records of a model, or with one of them; or whether they may do one thing. */
    perms: async (request, reply) => {
      const model = modelOf(app, request)
      const { id, action } = request.query as Query
      const actions = await permittedActions(app, callerOf(request), model, idIn(model, id))
      const words = actions.map((each) => WORDS[each])
      if (action === undefined) return sendJson(reply, JSON.stringify({ status: 0, data: words }))
      refuseUnless(words, action)
      return sendJson(reply, JSON.stringify({ status: 0, data: [] }))
    },
    verify: async (request, reply) => {
      const model = modelOf(app, request)
      await records(request).verify(model.name, dataOf(request.body))
      return sendJson(reply, JSON.stringify({ status: 0, data: [] }))
    },
  }
}
