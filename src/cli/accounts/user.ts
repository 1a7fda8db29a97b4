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
import { listOpenSessions } from '../../service/auth/sessions.js'
import { ADMINISTRATOR_ROLE } from '../../service/auth/roles.js'
import { appendOption, writeLine, addSubcommand, withCommandApp } from '../app-command.js'
import { formatColumns, formatTimestamp } from '../terminal/columns.js'
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

export function addUserCommands(program: Command): void {
  const user = program.command('user').description('add and change the people who may log in')
  user.addHelpText('after', EXAMPLES)
  addAccountCommands(user)

  addSubcommand(user, 'user', 'list', 'list the users').action(async (flags: Flags) => {
    await withCommandApp('user', flags, async (app) => {
      writeLine(await formatUsers(app))
    })
  })
  addSubcommand(user, 'user', 'roles <username>', 'show the roles of a user, or change them')
    .option('--add <role>', 'one more role; may be given several times', appendOption)
    .option('--remove <role>', 'one role less; may be given several times', appendOption)
    .action(async (username: string, flags: UserRolesFlags) => {
      await withCommandApp('user', flags, async (app) => {
        const before = readNames((await requireUserByName(app, username))['roles'])
        const roles = await applyRoleFlags(app, username, flags)
        const missing = (flags.remove ?? []).filter((role) => !before.includes(role))
        const warning =
          missing.length === 0 ? '' : `; ${missing.join(', ')} could not be taken: they had it not`
        writeLine(
          `${username} has ${roles.length === 0 ? 'no roles, and may do nothing' : roles.join(', ')}${warning}`,
        )
      })
    })
  addAccessCommands(user)
}

function addAccountCommands(user: Command): void {
  addSubcommand(user, 'user', 'add <username>', 'add a user')
    .option('--name <name>', 'the name that others see')
    .option('--admin', 'an administrator')
    .option('--role <role>', 'what the user may do; may be given several times', appendOption)
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: UserAddFlags) => {
      const roles = [...new Set([...(flags.admin ? [ADMINISTRATOR_ROLE] : []), ...(flags.role ?? [])])]
      const add = async (app: App) => {
        await requireFreeUsername(app, username, roles)
        const password = await readPassword(username, flags.passwordStdin)
        await addUser(app, { username, name: flags.name, password, roles })
        writeLine(`added ${username}, ${describeRoles(roles)}`)
      }
      await withCommandApp('user', flags, add, { mayCreate: true })
    })
  addSubcommand(user, 'user', 'passwd <username>', 'give a user another password; ends their sessions')
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: UserAddFlags) => {
      await withCommandApp('user', flags, async (app) => {
        await requireUserByName(app, username)
        await changePassword(app, username, await readPassword(username, flags.passwordStdin))
        writeLine(`${username} has another password; every session of theirs is over`)
      })
    })
}

/** Adds the commands about logging in: disable, enable, sessions and logout. */
function addAccessCommands(user: Command): void {
  const addCommand = (
    usage: string,
    description: string,
    work: (app: App, username: string) => Promise<string>,
  ) => {
    addSubcommand(user, 'user', `${usage} <username>`, description).action(
      async (username: string, flags: Flags) => {
        await withCommandApp('user', flags, async (app) => {
          writeLine(await work(app, username))
        })
      },
    )
  }
  addCommand(
    'disable',
    'keep a user from logging in; ends their sessions, and their keys rest',
    async (app, username) => {
      await setUserDisabled(app, username, true)
      return `${username} can no longer log in; every session of theirs is over`
    },
  )
  addCommand('enable', 'let a disabled user log in again', async (app, username) => {
    await setUserDisabled(app, username, false)
    return `${username} can log in`
  })
  addCommand('sessions', 'list the sessions of a user', formatSessions)
  addCommand('logout', 'end all sessions of a user; keys stay', async (app, username) => {
    const ended = await endUserSessions(app, username)
    return `${username} is logged out: ${pluralize(ended, 'session')} ended`
  })
}

function describeRoles(roles: readonly string[]): string {
  if (roles.length === 0) return 'who may do nothing yet: give them a role with verso user roles'
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
    throw new ConfigError('Nothing was changed', [`${both.join(', ')}: either added or removed, not both`])
  if (add.length + remove.length > 0) return changeUserRoles(app, username, { add, remove })
  return readNames((await requireUserByName(app, username))['roles'])
}

async function formatUsers(app: App): Promise<string> {
  const users = await listUserRecords(app)
  if (users.length === 0)
    return `there is no user in ${redactDatabaseUrl(app.settings.db)}; to add one, run: verso user add`
  const rows = users.map((user) => [
    ...[String(user.id), String(user['username']), typeof user['name'] === 'string' ? user['name'] : ''],
    readNames(user['roles']).join(', ') || 'none',
    user['disabled'] === true ? 'disabled' : 'enabled',
    formatTimestamp(user['lastLoginOn']),
  ])
  return formatColumns(['id', 'user', 'name', 'roles', 'state', 'last login'], rows)
}

async function formatSessions(app: App, username: string): Promise<string> {
  const { id } = await requireUserByName(app, username)
  const open = await listOpenSessions(app, id)
  if (open.length === 0) return `${username} has no session`
  const rows = open.map(({ createdOn, lastSeenOn, address, agent }) => [
    ...[formatTimestamp(createdOn), formatTimestamp(lastSeenOn)],
    ...[address ?? 'unknown', agent ?? 'unknown'],
  ])
  return formatColumns(['since', 'last seen', 'address', 'program'], rows)
}
