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
      help: 'Where Changes are sent, by POST.',
    },
    models: {
      type: 'json',
      help: 'The models whose Changes are sent, as a list of names; all that people declare if empty.',
    },
    user: {
      type: 'many-to-one',
      target: USER_MODEL,
      help: 'Changes are told as this user may see them; everything is told without one.',
    },
    secret: {
      type: 'string',
      secret: true,
      length: MAX_WEBHOOK_SECRET_CHARACTERS,
      help: 'What calls are signed with.',
    },
    paused: {
      type: 'boolean',
      default: false,
      help: 'Nothing is sent until it is resumed, and nothing lost.',
    },
    from: {
      type: 'enum',
      selection: ['end', WEBHOOK_FROM_BEGINNING],
      default: 'end',
      help: 'Whether a new one is told of what there was before.',
    },
  },
  listFields: ['name', 'url', 'models', 'user', 'paused'],
})
