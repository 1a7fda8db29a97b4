import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { pluralize } from '../../model/values/plural.js'
import { addUser, changePassword, setUserDisabled } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { listOpenSessions } from '../../service/auth/open-sessions.js'
import { ADMINISTRATOR_ROLE } from '../../service/auth/roles.js'
import {
  changeUserRoles,
  endUserSessions,
  readNames,
  requireFreeUsername,
  requireUserByName,
  listUserRecords,
} from '../../service/auth/user-records.js'
import { collect, say, subcommand, withAccounts } from '../app-command.js'
import { inColumns, shownMoment } from '../terminal/columns.js'
import { shownDatabase } from '../open.js'
import { askPassword } from '../terminal/ask-password.js'
import type { Flags } from '../settings/settings.js'

const EXAMPLES = `
Examples:
  $ verso user add ada --name "Ada Lovelace" --admin
  $ verso user add bob --role editor
  $ verso user roles bob --add reader --remove editor
  $ verso user passwd ada --password-stdin < password.txt
  $ verso user list --db postgres://verso@db.example.org/verso
  $ verso user passwd admin --db sqlite:data/demo.db`

interface AddFlags extends Flags {
  readonly name?: string
  readonly admin?: boolean
  readonly role?: readonly string[]
  readonly passwordStdin?: boolean
}

interface RolesFlags extends Flags {
  readonly add?: readonly string[]
  readonly remove?: readonly string[]
}

export function addUserCommands(program: Command): void {
  const user = program.command('user').description('add and change the people who may log in')
  user.addHelpText('after', EXAMPLES)
  addMaking(user)

  subcommand(user, 'user', 'list', 'list the users').action(async (flags: Flags) => {
    await withAccounts('user', flags, async (app) => {
      say(await listing(app))
    })
  })
  subcommand(user, 'user', 'roles <username>', 'show the roles of a user, or change them')
    .option('--add <role>', 'one more role; may be given several times', collect)
    .option('--remove <role>', 'one role less; may be given several times', collect)
    .action(async (username: string, flags: RolesFlags) => {
      await withAccounts('user', flags, async (app) => {
        const before = readNames((await requireUserByName(app, username))['roles'])
        const roles = await rolesOf(app, username, flags)
        const strange = (flags.remove ?? []).filter((role) => !before.includes(role))
        const told = strange.length === 0 ? '' : `; ${strange.join(', ')} could not be taken: they had it not`
        say(
          `${username} has ${roles.length === 0 ? 'no roles, and may do nothing' : roles.join(', ')}${told}`,
        )
      })
    })
  addDoors(user)
}

function addMaking(user: Command): void {
  subcommand(user, 'user', 'add <username>', 'add a user')
    .option('--name <name>', 'the name that others see')
    .option('--admin', 'an administrator')
    .option('--role <role>', 'what the user may do; may be given several times', collect)
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: AddFlags) => {
      const roles = [...new Set([...(flags.admin ? [ADMINISTRATOR_ROLE] : []), ...(flags.role ?? [])])]
      const add = async (app: App) => {
        await requireFreeUsername(app, username, roles)
        const password = await askPassword(username, flags.passwordStdin)
        await addUser(app, { username, name: flags.name, password, roles })
        say(`added ${username}, ${saidOf(roles)}`)
      }
      await withAccounts('user', flags, add, { mayCreate: true })
    })
  subcommand(user, 'user', 'passwd <username>', 'give a user another password; ends their sessions')
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: AddFlags) => {
      await withAccounts('user', flags, async (app) => {
        await requireUserByName(app, username)
        await changePassword(app, username, await askPassword(username, flags.passwordStdin))
        say(`${username} has another password; every session of theirs is over`)
      })
    })
}

/** What lets people in, and what keeps them out. */
function addDoors(user: Command): void {
  const each = (
    usage: string,
    description: string,
    work: (app: App, username: string) => Promise<string>,
  ) => {
    subcommand(user, 'user', `${usage} <username>`, description).action(
      async (username: string, flags: Flags) => {
        await withAccounts('user', flags, async (app) => {
          say(await work(app, username))
        })
      },
    )
  }
  each(
    'disable',
    'keep a user from logging in; ends their sessions, and their keys rest',
    async (app, username) => {
      await setUserDisabled(app, username, true)
      return `${username} can no longer log in; every session of theirs is over`
    },
  )
  each('enable', 'let a disabled user log in again', async (app, username) => {
    await setUserDisabled(app, username, false)
    return `${username} can log in`
  })
  each('sessions', 'list the sessions of a user', sessionListing)
  each('logout', 'end all sessions of a user; keys stay', async (app, username) => {
    const ended = await endUserSessions(app, username)
    return `${username} is logged out: ${pluralize(ended, 'session')} ended`
  })
}

function saidOf(roles: readonly string[]): string {
  if (roles.length === 0) return 'who may do nothing yet: give them a role with verso user roles'
  return roles.length === 1 && roles[0] === ADMINISTRATOR_ROLE
    ? 'an administrator'
    : `with the roles ${roles.join(', ')}`
}

async function rolesOf(app: App, username: string, { add = [], remove = [] }: RolesFlags): Promise<string[]> {
  const both = add.filter((role) => remove.includes(role))
  if (both.length > 0)
    throw new ConfigError('Nothing was changed', [`${both.join(', ')}: either added or removed, not both`])
  if (add.length + remove.length > 0) return changeUserRoles(app, username, { add, remove })
  return readNames((await requireUserByName(app, username))['roles'])
}

async function listing(app: App): Promise<string> {
  const users = await listUserRecords(app)
  if (users.length === 0)
    return `there is no user in ${shownDatabase(app.settings.db)}; to add one, run: verso user add`
  const rows = users.map((user) => [
    ...[String(user.id), String(user['username']), typeof user['name'] === 'string' ? user['name'] : ''],
    readNames(user['roles']).join(', ') || 'none',
    user['disabled'] === true ? 'disabled' : 'enabled',
    shownMoment(user['lastLoginOn']),
  ])
  return inColumns(['id', 'user', 'name', 'roles', 'state', 'last login'], rows)
}

async function sessionListing(app: App, username: string): Promise<string> {
  const { id } = await requireUserByName(app, username)
  const open = await listOpenSessions(app, id)
  if (open.length === 0) return `${username} has no session`
  const rows = open.map(({ createdOn, lastSeenOn, address, agent }) => [
    ...[shownMoment(createdOn), shownMoment(lastSeenOn)],
    ...[address ?? 'unknown', agent ?? 'unknown'],
  ])
  return inColumns(['since', 'last seen', 'address', 'program'], rows)
}
