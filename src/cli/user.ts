import type { Command } from 'commander'
import { addUser, allUsers, changePassword, setDisabled } from '../service/accounts.js'
import type { App } from '../service/app.js'
import { ADMINISTRATOR } from '../service/roles.js'
import { openApp, requireDatabase, shownDatabase } from './open.js'
import { askPassword } from './password.js'
import { addSettings, readSettings, type Flags } from './settings.js'

const EXAMPLES = `
Examples:
  $ verso user add ada --name "Ada Lovelace" --admin
  $ verso user passwd ada --password-stdin < password.txt
  $ verso user list --db postgres://verso@db.example.org/verso
  $ verso user passwd admin --db sqlite:data/demo.db`

interface AddFlags extends Flags {
  readonly name?: string
  readonly admin?: boolean
  readonly passwordStdin?: boolean
}

export function addUserCommands(program: Command): void {
  const user = program.command('user').description('add and change the people who may log in')
  user.addHelpText('after', EXAMPLES)

  subcommand(user, 'add <username>', 'add a user')
    .option('--name <name>', 'the name that others see')
    .option('--admin', 'an administrator')
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: AddFlags) => {
      await withUsers(
        flags,
        async (app) => {
          const password = await askPassword(username, flags.passwordStdin)
          await addUser(app, {
            username,
            name: flags.name,
            password,
            roles: flags.admin ? [ADMINISTRATOR] : [],
          })
          say(`added ${username}${flags.admin ? ', an administrator' : ''}`)
        },
        true,
      )
    })

  subcommand(user, 'passwd <username>', 'give a user another password; ends their sessions')
    .option('--password-stdin', 'read the password from standard input')
    .action(async (username: string, flags: AddFlags) => {
      await withUsers(flags, async (app) => {
        await changePassword(app, username, await askPassword(username, flags.passwordStdin))
        say(`${username} has another password; every session of theirs is over`)
      })
    })

  subcommand(user, 'list', 'list the users').action(async (flags: Flags) => {
    await withUsers(flags, async (app) => say(await listing(app)))
  })

  subcommand(user, 'disable <username>', 'keep a user from logging in; ends their sessions').action(
    async (username: string, flags: Flags) => {
      await withUsers(flags, async (app) => {
        await setDisabled(app, username, true)
        say(`${username} can no longer log in; every session of theirs is over`)
      })
    },
  )

  subcommand(user, 'enable <username>', 'let a disabled user log in again').action(
    async (username: string, flags: Flags) => {
      await withUsers(flags, async (app) => {
        await setDisabled(app, username, false)
        say(`${username} can log in`)
      })
    },
  )
}

function subcommand(user: Command, usage: string, description: string): Command {
  return addSettings(user.command(usage).description(description), 'user')
}

/** Users need no models: tables of models stay as they are. */
async function withUsers(flags: Flags, work: (app: App) => Promise<void>, mayCreate = false): Promise<void> {
  const { db } = readSettings('user', flags, process.env)
  if (!mayCreate) requireDatabase(db)
  const app = await openApp({ settings: { db }, models: [] })
  try {
    await work(app)
  } finally {
    await app.close()
  }
}

async function listing(app: App): Promise<string> {
  const users = await allUsers(app)
  if (users.length === 0)
    return `there is no user in ${shownDatabase(app.settings.db)}; to add one, run: verso user add`
  const rows = users.map((user) => [
    String(user.id),
    user.username,
    user.name ?? '',
    user.disabled ? 'disabled' : 'enabled',
  ])
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n')
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
