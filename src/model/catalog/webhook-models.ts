// The system model for webhooks. Only administrators write it.
import { defineModel } from '../definition/define-model.js'
import { USER_MODEL } from '../definition/model.js'

export const WEBHOOK_MODEL = 'verso.feed.Webhook'
export const MAX_WEBHOOK_URL_CHARACTERS = 2_000
const MAX_WEBHOOK_SECRET_CHARACTERS = 100

/** The value of `from` that sends all changes since the beginning of the log. */
export const WEBHOOK_FROM_BEGINNING = 'beginning'

export const WEBHOOK_DEFINITION = defineModel({
  name: WEBHOOK_MODEL,
  title: 'Webhook',
  fields: {
    name: { type: 'string', required: true, length: { min: 1, max: 100 } },
    url: {
      type: 'string',
      required: true,
      length: MAX_WEBHOOK_URL_CHARACTERS,
      help: 'Changes are sent to this URL by POST.',
    },
    models: {
      type: 'json',
      help: 'The models whose changes are sent, as a list of names. Null or an empty list means all models from model files.',
    },
    user: {
      type: 'many-to-one',
      target: USER_MODEL,
      help: 'Only changes and fields that this user may read are sent. Without a user, everything is sent.',
    },
    secret: {
      type: 'string',
      secret: true,
      length: MAX_WEBHOOK_SECRET_CHARACTERS,
      help: 'The secret that signs each request.',
    },
    paused: {
      type: 'boolean',
      default: false,
      help: 'While this is true, nothing is sent. Changes committed meanwhile are sent once it is false again.',
    },
    from: {
      type: 'enum',
      selection: ['end', WEBHOOK_FROM_BEGINNING],
      default: 'end',
      help: 'Where a new webhook starts: at the end of the change log, or at its beginning.',
    },
  },
  listFields: ['name', 'url', 'models', 'user', 'paused'],
})
