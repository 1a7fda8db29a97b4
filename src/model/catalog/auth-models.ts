// The system models for access: users, roles, permissions, API keys and security events.
import { defineModel } from '../definition/define-model.js'
import { USER_MODEL, type SystemModelOptions } from '../definition/model.js'
import { countCharacters } from '../values/value.js'

export const MAX_PASSWORD_BYTES = 1024
export const MIN_PASSWORD_CHARACTERS = 12
const MAX_USERNAME_CHARACTERS = 64
const MAX_CONDITION_CHARACTERS = 4_000

export const ROLE_MODEL = 'verso.auth.Role'
export const PERMISSION_MODEL = 'verso.auth.Permission'
export const API_KEY_MODEL = 'verso.auth.ApiKey'
export const EVENT_MODEL = 'verso.auth.Event'

/** Model files may add fields to users, which conditions of permissions can then use. */
export const USER_DEFINITION = defineModel({
  name: USER_MODEL,
  title: 'User',
  fields: {
    username: { type: 'string', required: true, unique: true, length: MAX_USERNAME_CHARACTERS },
    name: { type: 'string' },
    password: { type: 'string', secret: 'password', required: true, length: MAX_PASSWORD_BYTES },
    disabled: { type: 'boolean', default: false },
    roles: { type: 'many-to-many', target: ROLE_MODEL },
    keys: { type: 'one-to-many', target: API_KEY_MODEL, mappedBy: 'user', owned: true, copy: false },
    lastLoginOn: { type: 'datetime' },
  },
  nameField: 'name',
  listFields: ['username', 'name', 'disabled', 'lastLoginOn'],
})

/** The service sets `lastLoginOn` without a new version: a login is not a change of the user. */
export const USER_OPTIONS: SystemModelOptions = { systemFields: ['lastLoginOn'], isReferenceOnly: true }

export const ROLE_DEFINITION = defineModel({
  name: ROLE_MODEL,
  title: 'Role',
  fields: {
    name: { type: 'string', required: true, unique: true, length: { min: 1, max: 100 } },
    description: { type: 'string' },
    admin: { type: 'boolean', default: false, help: 'Users with this role may do everything.' },
    permissions: { type: 'one-to-many', target: PERMISSION_MODEL, mappedBy: 'role', owned: true },
    users: { type: 'many-to-many', target: USER_MODEL, mappedBy: 'roles' },
  },
  listFields: ['name', 'description', 'admin'],
})

export const PERMISSION_DEFINITION = defineModel({
  name: PERMISSION_MODEL,
  title: 'Permission',
  fields: {
    role: { type: 'many-to-one', target: ROLE_MODEL, required: true },
    model: {
      type: 'string',
      required: true,
      length: { min: 1 },
      help: 'The name of a model, a package such as crm.*, or * for all models except verso.*.',
    },
    canRead: { type: 'boolean', default: false },
    canCreate: { type: 'boolean', default: false },
    canUpdate: { type: 'boolean', default: false },
    canRemove: { type: 'boolean', default: false },
    canExport: { type: 'boolean', default: false },
    condition: {
      type: 'string',
      length: MAX_CONDITION_CHARACTERS,
      help: 'Limits the permission to records that match this filter. It can use :user, as in createdBy = :user.',
    },
    readable: {
      type: 'json',
      help: 'The fields that may be read, as a list of names. Null means all fields.',
    },
    writable: {
      type: 'json',
      help: 'The fields that may be written, as a list of names. Null means all fields.',
    },
  },
  nameField: 'model',
  listFields: [
    'model',
    'role',
    'canRead',
    'canCreate',
    'canUpdate',
    'canRemove',
    'canExport',
    'condition',
    'readable',
    'writable',
  ],
})

export const API_KEY_DEFINITION = defineModel({
  name: API_KEY_MODEL,
  title: 'API key',
  fields: {
    name: { type: 'string', required: true, length: { min: 1, max: 100 } },
    user: { type: 'many-to-one', target: USER_MODEL, required: true },
    roles: {
      type: 'many-to-many',
      target: ROLE_MODEL,
      help: 'The roles of the key. Only roles that its user has, too, take effect.',
    },
    prefix: { type: 'string', length: 20, help: 'The first characters of the key, to identify it.' },
    hash: { type: 'string', secret: true, length: 100 },
    expiresOn: { type: 'datetime', required: true },
    lastUsedOn: { type: 'datetime' },
  },
  listFields: ['name', 'user', 'prefix', 'expiresOn', 'lastUsedOn'],
  indexes: [['user'], ['prefix']],
})

export const API_KEY_OPTIONS: SystemModelOptions = {
  systemFields: ['user', 'prefix', 'hash', 'lastUsedOn'],
  createInstruction:
    'An API key cannot be created as a record: its user creates it with POST /ws/me/keys, or run verso key add; nothing was changed',
}

/** The closed list of security events. Changes of records are not among them: the log has those. */
const EVENT_KINDS = [
  'login',
  'login-failed',
  'login-refused',
  'logout',
  'password-changed',
  'reset-link-made',
  'sessions-ended',
  'key-made',
  'key-refused',
  'history-purged',
  'database-restored',
] as const

export type EventKind = (typeof EVENT_KINDS)[number]

export const EVENT_DEFINITION = defineModel({
  name: EVENT_MODEL,
  title: 'Event',
  fields: {
    kind: { type: 'enum', selection: EVENT_KINDS, required: true },
    user: { type: 'many-to-one', target: USER_MODEL },
    address: { type: 'string', length: 100 },
    note: { type: 'string' },
  },
  nameField: 'kind',
  listFields: ['kind', 'user', 'address', 'note', 'createdOn'],
  indexes: [['user']],
})

/** The reference is a system field, like `createdBy`, so it does not keep the user from being deleted. */
export const EVENT_OPTIONS: SystemModelOptions = { systemFields: ['user'], isReadOnly: true }

const USERNAME_RULE = `must be 1 to ${MAX_USERNAME_CHARACTERS} letters, digits or any of . _ @ + -`

/**
 * Normalizes a user name to NFKC and lower case, so that no two accounts differ only in case, width or font. Returns undefined if the
 * name is invalid.
 */
export function normalizeUsername(input: string): string | undefined {
  return spellUsername(input, 'NFKC')
}

/** Lists the spellings to look up, the most exact one first. Accounts of earlier releases are stored in NFC. */
export function listUsernameSpellings(input: string): readonly string[] {
  const spellings = [spellUsername(input, 'NFC'), spellUsername(input, 'NFKC')]
  return [...new Set(spellings.filter((name) => name !== undefined))]
}

function spellUsername(input: string, form: 'NFC' | 'NFKC'): string | undefined {
  const name = input.normalize(form).toLowerCase().normalize(form)
  return /^[\p{L}\p{N}._@+-]+$/u.test(name) && countCharacters(name) <= MAX_USERNAME_CHARACTERS
    ? name
    : undefined
}

/** Scripts whose letters look alike. */
const CONFUSABLE_SCRIPTS: Readonly<Record<string, RegExp>> = {
  Latin: /\p{Script=Latin}/u,
  Greek: /\p{Script=Greek}/u,
  Cyrillic: /\p{Script=Cyrillic}/u,
}

/** Returns an error message for an invalid new user name. A name that mixes scripts can look like another name. */
export function validateNewUsername(input: string): string | undefined {
  const username = normalizeUsername(input)
  if (username === undefined) return USERNAME_RULE
  const scripts = Object.keys(CONFUSABLE_SCRIPTS).filter((script) =>
    CONFUSABLE_SCRIPTS[script]?.test(username),
  )
  return scripts.length < 2 ? undefined : `mixes ${scripts.join(' and ')} letters; use letters of one script`
}
