// Models of the service itself: stored, versioned and logged like any record.
import {
  API_KEY_DEFINITION,
  EVENT_DEFINITION,
  KEPT_OF_API_KEY,
  KEPT_OF_EVENT,
  KEPT_OF_USER,
  PERMISSION_DEFINITION,
  ROLE_DEFINITION,
  USER_DEFINITION,
} from './auth-models.js'
import { defineModel } from '../definition/define-model.js'
import { extend, type ModelExtension } from '../definition/extend-model.js'
import { checkModel, type Model } from '../definition/model.js'
import { WEBHOOK_DEFINITION } from './webhook-models.js'

/** The one model of the service that people may extend; a catalog has it with what they add. */
export const USER: Model = keeping(KEPT_OF_USER, checked(USER_DEFINITION))
const ROLE: Model = checked(ROLE_DEFINITION)
const PERMISSION: Model = checked(PERMISSION_DEFINITION)
const API_KEY: Model = keeping(KEPT_OF_API_KEY, checked(API_KEY_DEFINITION))
const EVENT: Model = keeping(KEPT_OF_EVENT, checked(EVENT_DEFINITION))
const WEBHOOK: Model = checked(WEBHOOK_DEFINITION)

/** The models that are served, as records: clients look models up here. Kept by the service; see `service/maintenance/meta-models.ts`. */
export const META_MODEL: Model = checked(
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
export const META_FILE: Model = keeping(
  ['fileType', 'fileSize'],
  checked(
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
  ...[USER, ROLE, PERMISSION, API_KEY, EVENT, WEBHOOK],
  ...[META_MODEL, META_FILE],
]

/** Whether only the service writes records of this model. */
export function isReadOnly({ name }: Model): boolean {
  return name === META_MODEL.name || name === EVENT.name
}

/** Whether its records may be written inside of others. A user is only ever referred to. */
export function isWrittenInside(model: Model): boolean {
  return !isReadOnly(model) && model.name !== USER.name
}

/** Whether it says who may do what, or who is told of it: rights to everything do not include rights to these. */
export function isAuth({ name }: Model): boolean {
  return name.startsWith('verso.')
}

/** Whether rights may change with records of this name. */
export function decidesRights(name: string): boolean {
  return name.startsWith('verso.auth.') && name !== EVENT.name
}

/** The user with the fields that people add; what is wrong with them is reported. */
export function extendUser(
  extensions: readonly ModelExtension[],
  report: (fault: string) => void,
): Model | undefined {
  for (const { fields = {}, nameField, listFields, together } of extensions) {
    for (const name of Object.keys(fields))
      if (USER.fields.has(name)) report(`${USER.name}.${name}: the service has this field itself`)
    if ([nameField, listFields, together].some((option) => option !== undefined))
      report(`${USER.name}: an extension of it adds fields, and nothing else`)
  }
  const model = checkModel(extend(USER_DEFINITION, extensions), report)
  return model && keeping(KEPT_OF_USER, model)
}

/** The same model, whose fields of these names only the service sets. */
function keeping(names: readonly string[], model: Model): Model {
  const fields = [...model.fields].map(
    ([name, field]) => [name, names.includes(name) ? { ...field, kept: true } : field] as const,
  )
  return { ...model, fields: new Map(fields) }
}

function checked(definition: unknown): Model {
  const faults: string[] = []
  const model = checkModel(definition, (fault) => faults.push(fault))
  if (!model) throw new Error(`a system model is at fault: ${faults.join('; ')}`)
  return model
}
