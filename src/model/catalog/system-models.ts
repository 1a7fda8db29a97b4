// Models of the service itself: stored, versioned and logged like any record.
import {
  API_KEY_DEFINITION,
  EVENT_DEFINITION,
  API_KEY_SYSTEM_FIELDS,
  EVENT_SYSTEM_FIELDS,
  USER_SYSTEM_FIELDS,
  PERMISSION_DEFINITION,
  ROLE_DEFINITION,
  USER_DEFINITION,
} from './auth-models.js'
import { defineModel } from '../definition/define-model.js'
import { applyExtensions, type ModelExtension } from '../definition/extend-model.js'
import { checkModel, type Model } from '../definition/model.js'
import { WEBHOOK_DEFINITION } from './webhook-models.js'

/** The one model of the service that people may extend; a catalog has it with what they add. */
export const USER_SYSTEM_MODEL: Model = withSystemFields(
  USER_SYSTEM_FIELDS,
  checkSystemModel(USER_DEFINITION),
)
const ROLE_SYSTEM_MODEL: Model = checkSystemModel(ROLE_DEFINITION)
const PERMISSION_SYSTEM_MODEL: Model = checkSystemModel(PERMISSION_DEFINITION)
const API_KEY_SYSTEM_MODEL: Model = withSystemFields(
  API_KEY_SYSTEM_FIELDS,
  checkSystemModel(API_KEY_DEFINITION),
)
const EVENT_SYSTEM_MODEL: Model = withSystemFields(EVENT_SYSTEM_FIELDS, checkSystemModel(EVENT_DEFINITION))
const WEBHOOK_SYSTEM_MODEL: Model = checkSystemModel(WEBHOOK_DEFINITION)

/** The models that are served, as records: clients look models up here. Kept by the service; see `service/maintenance/meta-models.ts`. */
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
)

/** Files that stand for themselves: other models refer to them. What is said of the content follows it, whatever a client sends. */
export const META_FILE: Model = withSystemFields(
  ['fileType', 'fileSize'],
  checkSystemModel(
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
  ),
)

/** All of them may be named by clients who have a right to. */
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

/** Whether only the service writes records of this model. */
export function isReadOnly({ name }: Model): boolean {
  return name === META_MODEL.name || name === EVENT_SYSTEM_MODEL.name
}

/** Whether its records may be written inside of others. A user is only ever referred to. */
export function canBeNested(model: Model): boolean {
  return !isReadOnly(model) && model.name !== USER_SYSTEM_MODEL.name
}

/** Whether it says who may do what, or who is told of it: rights to everything do not include rights to these. */
export function isServiceModel({ name }: Model): boolean {
  return name.startsWith('verso.')
}

/** Whether rights may change with records of this name. */
export function affectsPermissions(name: string): boolean {
  return name.startsWith('verso.auth.') && name !== EVENT_SYSTEM_MODEL.name
}

/** The user with the fields that people add; what is wrong with them is reported. */
export function extendUser(
  extensions: readonly ModelExtension[],
  report: (fault: string) => void,
): Model | undefined {
  for (const { fields = {}, nameField, listFields, together } of extensions) {
    for (const name of Object.keys(fields))
      if (USER_SYSTEM_MODEL.fields.has(name))
        report(`${USER_SYSTEM_MODEL.name}.${name}: the service has this field itself`)
    if ([nameField, listFields, together].some((option) => option !== undefined))
      report(`${USER_SYSTEM_MODEL.name}: an extension of it adds fields, and nothing else`)
  }
  const model = checkModel(applyExtensions(USER_DEFINITION, extensions), report)
  return model && withSystemFields(USER_SYSTEM_FIELDS, model)
}

/** The same model, whose fields of these names only the service sets. */
function withSystemFields(names: readonly string[], model: Model): Model {
  const fields = [...model.fields].map(
    ([name, field]) => [name, names.includes(name) ? { ...field, kept: true } : field] as const,
  )
  return { ...model, fields: new Map(fields) }
}

function checkSystemModel(definition: unknown): Model {
  const errors: string[] = []
  const model = checkModel(definition, (error) => errors.push(error))
  if (!model) throw new Error(`a system model is at fault: ${errors.join('; ')}`)
  return model
}
