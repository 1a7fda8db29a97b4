import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { VersoError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import {
  discardContent,
  receiveContent,
  requireBinaryField,
  saveUpload,
} from '../../service/records/files.js'
import { requireWritableModel } from '../../service/context/ids.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import type { PendingBlob } from '../../store/engine/database.js'
import type { Download } from '../../wire.js'
import { readForm, type Keeper } from './form.js'
import { callerOf, type Guards } from '../route/guard.js'
import type { Habits } from '../compat/protocol.js'
import { versionOf } from '../request/parameters.js'
import { matchesAny, sendRecord } from './record-answers.js'
import { idOf, ifMatchOf, keyOf, modelOf } from '../route/record-request.js'
import { aboutRecords, type Resource } from '../route/resource.js'
import type { HttpSettings } from '../settings.js'

interface Params {
  readonly field: string
}

/** What stands between the parts of a form, and in front of them. */
const FORM_BYTES = 65_536

/** Belongs on a server that accepts forms. */
export function uploadResource(
  app: App,
  guards: Guards,
  habits: Habits,
  { bodyLimitBytes }: HttpSettings,
): Resource {
  const limitBytes = app.settings.uploadLimitBytes + bodyLimitBytes + FORM_BYTES
  const keeper: Keeper<PendingBlob> = {
    receive: (content) => receiveContent(app, content),
    discard: (incoming) => discardContent(app, incoming),
  }
  return {
    ...aboutRecords(guards),
    path: '/ws/rest/:model/upload',
    handlers: {
      // Nothing of the body has been read yet: what can be refused without it is refused first.
      POST: async (request, reply) => {
        const model = requireWritableModel(modelOf(app, request))
        requireBinaryField(model, callerOf(request))
        const options = { ...keyOf(request), ...ifMatchOf(request) }
        if (Number(request.headers['content-length'] ?? 0) > limitBytes)
          throw new VersoError('too-large', 'The file is larger than this service takes (--upload-limit)')
        const form = await readForm(request.raw, bodyLimitBytes, keeper)
        await guards.again(request, reply)
        const { fileName: name, file: blob } = form
        const field = habits.uploadField(model, form.field)
        const received = { data: habits.record(callerOf(request), model, form.data), field, name, blob }
        const wanted = form.wanted ? { wanted: habits.wanted(callerOf(request), model, form.wanted) } : {}
        return sendRecord(
          reply,
          await saveUpload(app, callerOf(request), model, received, { ...options, ...wanted }),
        )
      },
    },
  }
}

/** The content of a binary field. */
export function fileResource(app: App, guards: Guards, habits: Habits): Resource {
  return {
    ...aboutRecords(guards),
    path: '/ws/rest/:model/:id/:field/download',
    // Whoever fetches a file looks at the code, and would save an answer as the file.
    isAboutRecords: false,
    withParameters: ['DELETE'],
    handlers: {
      GET: async (request, reply) => {
        const model = modelOf(app, request)
        const { field } = request.params as Params
        const id = idOf(model, request)
        const file = await recordsForPrincipal(app, callerOf(request)).download(model.name, id, field)
        return file ? sendFile(request, reply, file) : reply.code(204).send()
      },
      DELETE: async (request, reply) => {
        const model = modelOf(app, request)
        const { field } = request.params as Params
        const id = idOf(model, request)
        const options = { ...keyOf(request), ...ifMatchOf(request), ...versionOf(request, habits) }
        return sendRecord(
          reply,
          await recordsForPrincipal(app, callerOf(request)).clear(model.name, id, field, options),
        )
      },
    },
  }
}

/** Always to be saved, never to be shown: whatever is in it cannot run as a page of ours. */
function sendFile(request: FastifyRequest, reply: FastifyReply, file: Download): FastifyReply {
  const content = file.content instanceof Readable ? file.content : Readable.from(file.content)
  const etag = `"${file.sha256}"`
  void reply.header('etag', etag)
  void reply.header('content-security-policy', "sandbox; default-src 'none'")
  if (matchesAny(request.headers['if-none-match'], etag)) {
    content.destroy()
    return reply.code(304).send()
  }
  void reply.header('content-type', file.type)
  void reply.header('content-length', file.size)
  void reply.header('content-disposition', dispositionOf(file.name))
  if (request.method !== 'HEAD') return reply.send(content)
  content.destroy()
  // A stream, though an empty one: of a text the framework would tell the length.
  return reply.send(Readable.from([]))
}

/** RFC 6266: the name for everybody who knows UTF-8, and before it one of plain letters for everybody else. */
function dispositionOf(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}
