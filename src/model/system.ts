// Models of the service itself: stored, versioned and logged like any record.
import { defineModel } from './definition.js'
import { checkModel, USER_MODEL, type Model } from './model.js'
import { lengthOf } from './value.js'

export const MAX_PASSWORD_BYTES = 1024
export const MIN_PASSWORD_LENGTH = 12
const MAX_USERNAME = 64

export const USER: Model = checked(
  defineModel({
    name: USER_MODEL,
    title: 'User',
    fields: {
      username: { type: 'string', required: true, unique: true, length: MAX_USERNAME },
      name: { type: 'string' },
      password: { type: 'string', secret: 'password', required: true, length: MAX_PASSWORD_BYTES },
      admin: { type: 'boolean', default: false },
      disabled: { type: 'boolean', default: false },
    },
    nameField: 'name',
    listFields: ['username', 'name', 'admin', 'disabled'],
  }),
)

/** The models that are served, as records: clients look models up here. Kept by the service; see `service/meta-models.ts`. */
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

/** Those that clients may name, beside the models that people declare. */
export const SERVED_SYSTEM_MODELS: readonly Model[] = [META_MODEL, META_FILE]
export const SYSTEM_MODELS: readonly Model[] = [USER, ...SERVED_SYSTEM_MODELS]

/** Whether only the service writes records of this model. */
export function isReadOnly(model: Model): boolean {
  return model === META_MODEL
}

/** One spelling for each user name, so that two accounts never look alike; undefined if it cannot be one. */
export function normalizeUsername(input: string): string | undefined {
  const name = input.normalize('NFC').toLowerCase()
  return /^[\p{L}\p{N}._@+-]+$/u.test(name) && lengthOf(name) <= MAX_USERNAME ? name : undefined
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
