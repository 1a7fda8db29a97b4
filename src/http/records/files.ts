import { VersoError } from '../../errors.js'
import {
  discardContent,
  receiveContent,
  requireBinaryField,
  saveUpload,
} from '../../service/records/files.js'
import { requireWritableModel } from '../../service/access/request-checks.js'
import { recordsForPrincipal } from '../../service/records/records.js'
import { isObject } from '../../model/values/value.js'
import type { PendingBlob } from '../../store/engine/database.js'
import { chooseRange, sendFile } from './download.js'
import { readForm, type UploadSink } from './form.js'
import { requirePrincipal, readRouteId, readRouteModel } from '../route/guard.js'
import { readVersionParameter } from '../request/parameters.js'
import { buildModelPath, sendCreated, sendRecord } from './record-responses.js'
import { readIfMatch, readIdempotencyKey } from '../request/headers.js'
import { sendEmpty } from '../response/send.js'
import { buildRecordRouteDefaults, documented, type Resource, type RouteContext } from '../route/resource.js'
import { CLEAR_DOCS, DOWNLOAD_DOCS, UPLOAD_DOCS } from './file-docs.js'
import { createContext } from '../../service/context/context.js'

interface FileRouteParams {
  readonly field: string
}

/** Allowance for the delimiters and headers of a form. */
const MAX_FORM_OVERHEAD_BYTES = 65_536

/** Register it in a scope with `acceptForms`. */
export function createUploadResource({ app, guards, protocol, settings }: RouteContext): Resource {
  const { bodyLimitBytes } = settings
  const limitBytes = app.settings.uploadLimitBytes + bodyLimitBytes + MAX_FORM_OVERHEAD_BYTES
  const sink: UploadSink<PendingBlob> = {
    receive: (content) => receiveContent(app, content),
    discard: (blob) => discardContent(app, blob),
  }
  return {
    ...buildRecordRouteDefaults(guards),
    path: '/ws/rest/:model/upload',
    handlers: {
      // The body is still unread here, so all checks that do not need it come first.
      POST: documented(UPLOAD_DOCS, async (request, reply) => {
        const model = requireWritableModel(readRouteModel(app, request))
        requireBinaryField(model, requirePrincipal(request))
        const options = { ...readIdempotencyKey(request), ...readIfMatch(request) }
        if (Number(request.headers['content-length'] ?? 0) > limitBytes)
          throw new VersoError(
            'too-large',
            'The file exceeds the upload limit (--upload-limit); nothing was changed',
          )
        const form = await readForm(request.raw, bodyLimitBytes, sink)
        await guards.recheckAfterBody(request, reply)
        const principal = requirePrincipal(request)
        const upload = {
          data: protocol.convertRecord(principal, model, form.data),
          field: protocol.chooseUploadField(model, form.field),
          name: form.fileName,
          blob: form.file,
        }
        const returning = form.fieldSelection && protocol.convertFields(principal, model, form.fieldSelection)
        const saved = await saveUpload(createContext(app, principal), model, upload, {
          ...options,
          ...(returning ? { returning } : {}),
        })
        const isNew = !isObject(upload.data) || (upload.data['id'] ?? null) === null
        return isNew ? sendCreated(reply, buildModelPath(settings, model), saved) : sendRecord(reply, saved)
      }),
    },
  }
}

/** The content of a binary field. */
export function createFileResource({ app, guards, protocol }: RouteContext): Resource {
  return {
    ...buildRecordRouteDefaults(guards),
    path: '/ws/rest/:model/:id/:field/download',
    // Clients that download a file check the HTTP status only. They would save an error sent as 200 as the file.
    isAboutRecords: false,
    readsQueryFor: ['DELETE'],
    handlers: {
      GET: documented(DOWNLOAD_DOCS, async (request, reply) => {
        const model = readRouteModel(app, request)
        const { field } = request.params as FileRouteParams
        const id = readRouteId(model, request)
        const file = await recordsForPrincipal(app, requirePrincipal(request)).download(
          model.name,
          id,
          field,
          { chooseRange: (stored) => chooseRange(request, stored) },
        )
        return file ? sendFile(request, reply, file) : sendEmpty(reply, 204)
      }),
      DELETE: documented(CLEAR_DOCS, async (request, reply) => {
        const model = readRouteModel(app, request)
        const { field } = request.params as FileRouteParams
        const id = readRouteId(model, request)
        const options = {
          ...readIdempotencyKey(request),
          ...readIfMatch(request),
          ...readVersionParameter(request, protocol),
        }
        return sendRecord(
          reply,
          await recordsForPrincipal(app, requirePrincipal(request)).clear(model.name, id, field, options),
        )
      }),
    },
  }
}
