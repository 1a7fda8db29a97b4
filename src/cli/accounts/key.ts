import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../service/context/principal.js'
import { listApiKeys, createKey, revokeKey } from '../../service/auth/keys.js'
import { readNames, requireUserByName, listUserRecords } from '../../service/auth/accounts.js'
import {
  NOTHING_CHANGED,
  appendOption,
  parseIdArgument,
  addSubcommand,
  withCommandApp,
} from '../app-command.js'
import {
  addJsonFlag,
  formatNames,
  formatTimestamp,
  printLine,
  printListing,
  printNote,
  type JsonFlag,
  type ListingColumn,
} from '../terminal/listing.js'
import { duration } from '../settings/setting-types.js'
import type { Flags } from '../settings/read-settings.js'
import { createContext } from '../../service/context/context.js'

const EXAMPLES = `
A program authenticates with an API key. The key acts as its user, with some or all of the user's roles.
"key add" prints the key once; it is the only output on stdout.

Examples:
  $ verso key add ada --name backup --role reader --expires 30d > backup.key
  $ curl -H "API-KEY: $(cat backup.key)" http://localhost:8080/ws/meta/models
  $ verso key list
  $ verso key revoke 3`

const KEY_LIFETIME = duration('1m', '400d')

interface KeyAddFlags extends Flags {
  readonly name: string
  readonly role?: readonly string[]
  readonly expires?: string
}

interface ListedApiKey {
  readonly id: number
  readonly user: string
  readonly name: string
  /** First characters of the key. */
  readonly prefix: string
  readonly roles: readonly string[]
  readonly expiresOn: string
  readonly expired: boolean
  readonly lastUsedOn: string | null
}

const KEY_COLUMNS: readonly ListingColumn<ListedApiKey>[] = [
  { heading: 'id', format: ({ id }) => String(id) },
  { heading: 'user', format: ({ user }) => user },
  { heading: 'name', format: ({ name }) => name },
  { heading: 'key', format: ({ prefix }) => `${prefix}…` },
  { heading: 'roles', format: ({ roles }) => formatNames(roles) },
  {
    heading: 'expires',
    format: ({ expiresOn, expired }) => `${formatTimestamp(expiresOn)}${expired ? ' (expired)' : ''}`,
  },
  { heading: 'last used', format: ({ lastUsedOn }) => formatTimestamp(lastUsedOn) },
]

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('create, list and revoke the API keys of programs')
  key.addHelpText('after', EXAMPLES)

  addSubcommand(key, 'key', 'add <username>', 'create an API key that acts as this user, and print it once')
    .requiredOption('--name <text>', 'purpose of the key, shown in lists')
    .option(
      '--role <role>',
      'limit the key to this role of the user; repeat for several; default: all roles of the user',
      appendOption,
    )
    .option('--expires <time>', 'lifetime of the key, from 1m to 400d', '90d')
    .action(async (username: string, flags: KeyAddFlags) => {
      const lifetimeMs = KEY_LIFETIME.parse(flags.expires ?? '')
      if (lifetimeMs === undefined)
        throw new ConfigError(NOTHING_CHANGED, [
          `--expires must be ${KEY_LIFETIME.mustBe}, not "${flags.expires ?? ''}"`,
        ])
      await withCommandApp('key', flags, async (app) => {
        await createUserKey(app, username, flags, lifetimeMs)
      })
    })
  addJsonFlag(addSubcommand(key, 'key', 'list [username]', 'list the API keys of one user or of all')).action(
    async (username: string | undefined, { json = false, ...flags }: Flags & JsonFlag) => {
      await withCommandApp('key', flags, async (app) => {
        const ifEmpty = 'there are no API keys; to create one, run: verso key add'
        printListing(await listKeyRows(app, username), KEY_COLUMNS, { json, ifEmpty })
      })
    },
  )
  addSubcommand(key, 'key', 'revoke <id>', 'revoke an API key immediately').action(
    async (id: string, flags: Flags) => {
      const keyId = parseIdArgument(id)
      await withCommandApp('key', flags, async (app) => {
        await revokeKey(app, keyId)
        printLine(`revoked key ${keyId}`)
      })
    },
  )
}

async function createUserKey(
  app: App,
  username: string,
  { name, role }: KeyAddFlags,
  lifetimeMs: number,
): Promise<void> {
  const { id: user } = await requireUserByName(app, username)
  const expiresOn = new Date(app.clock.now() + lifetimeMs).toISOString()
  const { key, record } = await createKey(createContext(app, SERVICE_PRINCIPAL), {
    user,
    name,
    expiresOn,
    ...(role ? { roles: role } : {}),
  })
  const roles = readNames(record['roles'])
  const access =
    roles.length === 0
      ? 'without roles, so it has no permissions'
      : `with ${roles.length === 1 ? 'the role' : 'the roles'} ${roles.join(', ')}`
  // Only the key goes to stdout, so that it can be piped.
  printNote(
    `created key ${record.id} of ${username} ${access}; it expires on ${formatTimestamp(expiresOn)} and is not shown again`,
  )
  printLine(key)
}

async function listKeyRows(app: App, username: string | undefined): Promise<ListedApiKey[]> {
  const keys = await listApiKeys(
    app,
    username === undefined ? undefined : (await requireUserByName(app, username)).id,
  )
  const users = new Map((await listUserRecords(app)).map((user) => [user.id, String(user['username'])]))
  const now = new Date(app.clock.now()).toISOString()
  return keys.map((key) => ({
    id: key.id,
    user: users.get((key['user'] as { readonly id: number }).id) ?? '',
    name: String(key['name']),
    prefix: String(key['prefix']),
    roles: readNames(key['roles']),
    expiresOn: String(key['expiresOn']),
    expired: String(key['expiresOn']) <= now,
    lastUsedOn: key['lastUsedOn'] as string | null,
  }))
}
