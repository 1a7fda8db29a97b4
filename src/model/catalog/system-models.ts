// The system models. Their records are stored, versioned and logged like all others.
import {
  API_KEY_DEFINITION,
  EVENT_DEFINITION,
  API_KEY_OPTIONS,
  EVENT_OPTIONS,
  USER_OPTIONS,
  PERMISSION_DEFINITION,
  ROLE_DEFINITION,
  USER_DEFINITION,
} from './auth-models.js'
import { defineModel } from '../definition/define-model.js'
import { applyExtensions, type ModelExtension } from '../definition/extend-model.js'
import { checkModel } from '../definition/check-model.js'
import type { Model, SystemModelOptions } from '../definition/model.js'
import { WEBHOOK_DEFINITION } from './webhook-models.js'

/** The user model without extensions. It is the only system model that model files may extend; the catalog has the extended one. */
export const USER_SYSTEM_MODEL: Model = checkSystemModel(USER_DEFINITION, USER_OPTIONS)
const ROLE_SYSTEM_MODEL: Model = checkSystemModel(ROLE_DEFINITION)
const PERMISSION_SYSTEM_MODEL: Model = checkSystemModel(PERMISSION_DEFINITION)
const API_KEY_SYSTEM_MODEL: Model = checkSystemModel(API_KEY_DEFINITION, API_KEY_OPTIONS)
const EVENT_SYSTEM_MODEL: Model = checkSystemModel(EVENT_DEFINITION, EVENT_OPTIONS)
const WEBHOOK_SYSTEM_MODEL: Model = checkSystemModel(WEBHOOK_DEFINITION)

/** The served models as records, for clients that look models up. Only the service writes them; see `service/maintenance/meta-models.ts`. */
export const META_MODEL: Model = checkSystemModel(
  defineModel({
    name: 'com.axelor.meta.db.MetaModel',
    title: 'Model',
    fields: {
      name: { type: 'string', required: true },
      fullName: { type: 'string', required: true, unique: true },
      packageName: { type: 'string', required: true },
    },
    nameField: 'name',
    listFields: ['name', 'fullName', 'packageName'],
  }),
  { isReadOnly: true },
)

/** Files as records that other models refer to. The service derives the system fields from the content. */
export const META_FILE: Model = checkSystemModel(
  defineModel({
    name: 'com.axelor.meta.db.MetaFile',
    title: 'File',
    fields: {
      fileName: { type: 'string', required: true },
      fileType: { type: 'string' },
      fileSize: { type: 'long' },
      description: { type: 'text' },
      content: { type: 'binary' },
    },
    nameField: 'fileName',
    listFields: ['fileName', 'fileType', 'fileSize'],
  }),
  {
    systemFields: ['fileType', 'fileSize'],
    fileFields: { name: 'fileName', type: 'fileType', size: 'fileSize' },
  },
)

/** Clients may use all of them, given the permissions. */
export const SYSTEM_MODELS: readonly Model[] = [
  ...[
    USER_SYSTEM_MODEL,
    ROLE_SYSTEM_MODEL,
    PERMISSION_SYSTEM_MODEL,
    API_KEY_SYSTEM_MODEL,
    EVENT_SYSTEM_MODEL,
    WEBHOOK_SYSTEM_MODEL,
  ],
  ...[META_MODEL, META_FILE],
]

/** True for models of access and webhooks. A permission for all models does not cover them. */
export function isServiceModel({ name }: Model): boolean {
  return name.startsWith('verso.')
}

/** Adds the fields, checks and hooks of the extensions to the user model. Reports errors. */
export function extendUser(
  extensions: readonly ModelExtension[],
  report: (error: string) => void,
): Model | undefined {
  for (const { fields = {}, nameField, listFields, mergeGroups } of extensions) {
    for (const name of Object.keys(fields))
      if (USER_SYSTEM_MODEL.fields.has(name))
        report(`${USER_SYSTEM_MODEL.name}.${name}: this is a built-in field: choose another name`)
    if ([nameField, listFields, mergeGroups].some((option) => option !== undefined))
      report(`${USER_SYSTEM_MODEL.name}: an extension of this model can only add fields, checks and hooks`)
  }
  return checkModel(applyExtensions(USER_DEFINITION, extensions), report, {
    ...USER_OPTIONS,
    extensionFields: new Set(extensions.flatMap(({ fields = {} }) => Object.keys(fields))),
  })
}

function checkSystemModel(definition: unknown, options: SystemModelOptions = {}): Model {
  const errors: string[] = []
  const model = checkModel(definition, (error) => errors.push(error), options)
  if (!model) throw new Error(`invalid system model: ${errors.join('; ')}`)
  return model
}
