import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { pluralize } from '../../model/values/plural.js'
import {
  addUser,
  changePassword,
  setUserDisabled,
  changeUserRoles,
  endUserSessions,
  readNames,
  requireFreeUsername,
  requireUserByName,
  listUserRecords,
} from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { listOpenSessions, type OpenSession } from '../../service/auth/sessions.js'
import { ADMINISTRATOR_ROLE } from '../../service/auth/roles.js'
import { NOTHING_CHANGED, appendOption, addSubcommand, withCommandApp } from '../app-command.js'
import {
  addJsonFlag,
  formatNames,
  formatTimestamp,
  printJson,
  printLine,
  printListing,
  printNote,
  type JsonFlag,
  type ListingColumn,
} from '../terminal/listing.js'
import { spellCommands } from '../terminal/invocation.js'
import { redactDatabaseUrl } from '../open.js'
import { readPassword } from '../terminal/ask-password.js'
import type { Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Examples:
  $ verso user add ada --name "Ada Lovelace" --admin
  $ verso user add bob --role editor
  $ verso user roles bob --add reader --remove editor
  $ verso user passwd ada --password-stdin < password.txt
  $ verso user list --db postgres://verso@db.example.org/verso
  $ verso user passwd admin --db sqlite:data/demo.db`

interface UserAddFlags extends Flags {
  readonly name?: string
  readonly admin?: boolean
  readonly role?: readonly string[]
  readonly passwordStdin?: boolean
}

interface UserRolesFlags extends Flags {
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
}

interface ListedUser {
  readonly id: number
  readonly username: string
  readonly name: string | null
  readonly roles: readonly string[]
  readonly disabled: boolean
  readonly lastLoginOn: string | null
}

const USER_COLUMNS: readonly ListingColumn<ListedUser>[] = [
  { heading: 'id', format: ({ id }) => String(id) },
  { heading: 'user', format: ({ username }) => username },
  { heading: 'name', format: ({ name }) => name ?? '' },
  { heading: 'roles', format: ({ roles }) => formatNames(roles) },
  { heading: 'state', format: ({ disabled }) => (disabled ? 'disabled' : 'enabled') },
  { heading: 'last login', format: ({ lastLoginOn }) => formatTimestamp(lastLoginOn) },
]

type ListedSession = Omit<OpenSession, 'current'>

const SESSION_COLUMNS: readonly ListingColumn<ListedSession>[] = [
  { heading: 'since', format: ({ createdOn }) => formatTimestamp(createdOn) },
  { heading: 'last seen', format: ({ lastSeenOn }) => formatTimestamp(lastSeenOn) },
  { heading: 'address', format: ({ address }) => address ?? 'unknown' },
  { heading: 'program', format: ({ agent }) => agent ?? 'unknown' },
]

export function addUserCommands(program: Command): void {
  const user = program.command('user').description('add, list and change users')
  user.addHelpText('after', EXAMPLES)
  addAccountCommands(user)

  addJsonFlag(addSubcommand(user, 'user', 'list', 'list the users')).action(
    async ({ json = false, ...flags }: Flags & JsonFlag) => {
      await withCommandApp('user', flags, async (app) => {
        const ifEmpty = `${redactDatabaseUrl(app.settings.db)} has no users; to add one, run: verso user add`
        printListing(await listUserRows(app), USER_COLUMNS, { json, ifEmpty })
      })
    },
  )
  addJsonFlag(addSubcommand(user, 'user', 'roles <username>', 'show or change the roles of a user'))
    .option('--add <role>', 'add this role; repeat for several', appendOption)
    .option('--remove <role>', 'remove this role; repeat for several', appendOption)
    .action(async (username: string, { json = false, ...flags }: UserRolesFlags & JsonFlag) => {
      await withCommandApp('user', flags, async (app) => {
        const before = readNames((await requireUserByName(app, username))['roles'])
        const roles = await applyRoleFlags(app, username, flags)
        if (json) printJson({ username, roles })
        else
          printLine(
            `${username} has ${roles.length === 0 ? 'no roles and no permissions' : roles.join(', ')}`,
          )
        const missing = (flags.remove ?? []).filter((role) => !before.includes(role))
        if (missing.length > 0) printNote(`nothing to remove: ${username} did not have ${missing.join(', ')}`)
      })
    })
  addAccessCommands(user)
  addSessionCommands(user)
}

function addAccountCommands(user: Command): void {
  addSubcommand(user, 'user', 'add <username>', 'add a user; creates the database if it does not exist')
    .option('--name <name>', 'display name')
    .option('--admin', 'give the user the role administrator, which permits everything')
    .option('--role <role>', 'give the user this role; repeat for several', appendOption)
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: UserAddFlags) => {
      const roles = [...new Set([...(flags.admin ? [ADMINISTRATOR_ROLE] : []), ...(flags.role ?? [])])]
      const add = async (app: App) => {
        await requireFreeUsername(app, username, roles)
        const password = await readPassword(username, flags.passwordStdin)
        await addUser(app, { username, name: flags.name, password, roles })
        printLine(`added ${username}, ${describeNewRoles(roles)}`)
      }
      await withCommandApp('user', flags, add, { mayCreate: true })
    })
  addSubcommand(user, 'user', 'passwd <username>', 'change the password of a user and end their sessions')
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: UserAddFlags) => {
      await withCommandApp('user', flags, async (app) => {
        await requireUserByName(app, username)
        await changePassword(app, username, await readPassword(username, flags.passwordStdin))
        printLine(`changed the password of ${username} and ended all their sessions`)
      })
    })
}

function addAccessCommands(user: Command): void {
  addSubcommand(
    user,
    'user',
    'disable <username>',
    'disable a user: end their sessions, reject their logins and API keys',
  ).action(async (username: string, flags: Flags) => {
    await withCommandApp('user', flags, async (app) => {
      await setUserDisabled(app, username, true)
      printLine(`disabled ${username} and ended all their sessions`)
    })
  })
  addSubcommand(
    user,
    'user',
    'enable <username>',
    'enable a disabled user: accept their logins and API keys again',
  ).action(async (username: string, flags: Flags) => {
    await withCommandApp('user', flags, async (app) => {
      await setUserDisabled(app, username, false)
      printLine(`enabled ${username}`)
    })
  })
}

function addSessionCommands(user: Command): void {
  addJsonFlag(addSubcommand(user, 'user', 'sessions <username>', 'list the open sessions of a user')).action(
    async (username: string, { json = false, ...flags }: Flags & JsonFlag) => {
      await withCommandApp('user', flags, async (app) => {
        const ifEmpty = `${username} has no open sessions`
        printListing(await listSessionsOf(app, username), SESSION_COLUMNS, { json, ifEmpty })
      })
    },
  )
  addSubcommand(
    user,
    'user',
    'logout <username>',
    'end all sessions of a user; their API keys stay valid',
  ).action(async (username: string, flags: Flags) => {
    await withCommandApp('user', flags, async (app) => {
      printLine(`ended ${pluralize(await endUserSessions(app, username), 'session')} of ${username}`)
    })
  })
}

function describeNewRoles(roles: readonly string[]): string {
  if (roles.length === 0)
    return spellCommands('without roles and permissions; to add a role, run: verso user roles')
  return roles.length === 1 && roles[0] === ADMINISTRATOR_ROLE
    ? 'an administrator'
    : `with the roles ${roles.join(', ')}`
}

async function applyRoleFlags(
  app: App,
  username: string,
  { add = [], remove = [] }: UserRolesFlags,
): Promise<string[]> {
  const both = add.filter((role) => remove.includes(role))
  if (both.length > 0)
    throw new ConfigError(NOTHING_CHANGED, [`${both.join(', ')}: use either --add or --remove, not both`])
  if (add.length + remove.length > 0) return changeUserRoles(app, username, { add, remove })
  return readNames((await requireUserByName(app, username))['roles'])
}

async function listUserRows(app: App): Promise<ListedUser[]> {
  return (await listUserRecords(app)).map((user) => ({
    id: user.id,
    username: String(user['username']),
    name: typeof user['name'] === 'string' ? user['name'] : null,
    roles: readNames(user['roles']),
    disabled: user['disabled'] === true,
    lastLoginOn: user['lastLoginOn'] as string | null,
  }))
}

async function listSessionsOf(app: App, username: string): Promise<ListedSession[]> {
  const { id } = await requireUserByName(app, username)
  return (await listOpenSessions(app, id)).map(({ id, createdOn, lastSeenOn, address, agent }) => ({
    id,
    createdOn,
    lastSeenOn,
    address,
    agent,
  }))
}
