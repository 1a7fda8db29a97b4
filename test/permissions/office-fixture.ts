// A user with a given list of permissions, in a small office.
import { defineModel } from '../../src/model/definition/define-model.js'
import { extendModel } from '../../src/model/definition/extend-model.js'
import { ROLE_MODEL } from '../../src/model/catalog/auth-models.js'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Records } from '../../src/wire.js'
import { HttpClient } from '../http-client.js'
import { models } from '../models.js'
import { PASSWORD, type Service } from '../targets.js'

export const TEAM = 'office.Team'
export const PROJECT = 'office.Project'

const definitions = [
  defineModel({ name: TEAM, fields: { name: { type: 'string' } } }),
  defineModel({
    name: PROJECT,
    fields: {
      name: { type: 'string' },
      secret: { type: 'string' },
      region: { type: 'string' },
      team: { type: 'many-to-one', target: TEAM },
    },
  }),
  extendModel({
    name: USER_MODEL,
    fields: { region: { type: 'string' }, home: { type: 'many-to-one', target: TEAM } },
  }),
]

export const officeModels = [
  ...models,
  ...definitions.map((definition) => ({ file: 'office.ts', definition })),
]

export interface UserWithPermissions {
  readonly id: number
  readonly username: string
  readonly role: number
  readonly client: HttpClient
}

let count = 0

/** `more` holds further fields of the user. */
export async function grantee(
  { app, url }: Service,
  permissions: readonly object[],
  more: object = {},
): Promise<UserWithPermissions> {
  const root = rootOf({ app })
  const username = `grantee${++count}`
  const role = (await root.create(ROLE_MODEL, { name: `role of ${username}`, permissions })).data.id
  const id = await addUser(app, { username, password: PASSWORD, roles: [`role of ${username}`] })
  const { version } = await root.read(USER_MODEL, id)
  await root.update(USER_MODEL, id, { version, ...more })
  return { id, username, role, client: await HttpClient.login(url, username, PASSWORD) }
}

/** The verbs with all permissions. */
export function rootOf({ app }: Pick<Service, 'app'>): Records {
  return recordsForPrincipal(app, SERVICE_PRINCIPAL)
}

export async function permit(
  service: Pick<Service, 'app'>,
  { role }: UserWithPermissions,
  permissions: readonly object[],
): Promise<void> {
  const root = rootOf(service)
  const { version } = await root.read(ROLE_MODEL, role)
  await root.update(ROLE_MODEL, role, { version, permissions })
}
