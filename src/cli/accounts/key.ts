import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../service/context/principal.js'
import { listApiKeys, createKey, revokeKey } from '../../service/auth/keys.js'
import { readNames, requireUserByName, listUserRecords } from '../../service/auth/accounts.js'
import { appendOption, parseIdArgument, writeLine, addSubcommand, withCommandApp } from '../app-command.js'
import { formatColumns, formatTimestamp } from '../terminal/columns.js'
import { duration } from '../settings/setting-types.js'
import type { Flags } from '../settings/read-settings.js'
import { createContext } from '../../service/context/context.js'

const EXAMPLES = `
A key is for a program: it acts as its user, with some of the user's roles. It is printed once, alone on stdout.

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

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('make and revoke the keys of programs')
  key.addHelpText('after', EXAMPLES)

  addSubcommand(key, 'key', 'add <username>', 'make a key for a user')
    .requiredOption('--name <text>', 'what it is for')
    .option('--role <role>', 'only this role of the user; may be given several times', appendOption)
    .option('--expires <time>', 'how long it lasts, at most 400d', '90d')
    .action(async (username: string, flags: KeyAddFlags) => {
      const lifetimeMs = KEY_LIFETIME.parse(flags.expires ?? '')
      if (lifetimeMs === undefined)
        throw new ConfigError('Nothing was made', [
          `--expires must be ${KEY_LIFETIME.mustBe}, not "${flags.expires ?? ''}"`,
        ])
      await withCommandApp('key', flags, async (app) => {
        await createUserKey(app, username, flags, lifetimeMs)
      })
    })
  addSubcommand(key, 'key', 'list [username]', 'list the keys, of one user or of all').action(
    async (username: string | undefined, flags: Flags) => {
      await withCommandApp('key', flags, async (app) => {
        writeLine(await formatKeys(app, username))
      })
    },
  )
  addSubcommand(key, 'key', 'revoke <id>', 'end a key at once').action(async (id: string, flags: Flags) => {
    const keyId = parseIdArgument(id)
    await withCommandApp('key', flags, async (app) => {
      await revokeKey(app, keyId)
      writeLine(`key ${keyId} is over`)
    })
  })
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
  const roles = readNames(record['roles']).join(', ') || 'no roles, so that it may do nothing'
  const words = `key ${record.id} of ${username}, good for ${roles}, until ${formatTimestamp(expiresOn)}; it is not shown again`
  // Only the key goes to stdout, so that it can be piped.
  process.stderr.write(`${words}\n`)
  writeLine(key)
}

async function formatKeys(app: App, username: string | undefined): Promise<string> {
  const keys = await listApiKeys(
    app,
    username === undefined ? undefined : (await requireUserByName(app, username)).id,
  )
  if (keys.length === 0) return 'there is no key; to make one, run: verso key add'
  const users = new Map((await listUserRecords(app)).map((user) => [user.id, String(user['username'])]))
  const now = new Date(app.clock.now()).toISOString()
  const rows = keys.map((key) => [
    ...[String(key.id), users.get((key['user'] as { readonly id: number }).id) ?? '', String(key['name'])],
    ...[`${String(key['prefix'])}…`, readNames(key['roles']).join(', ') || 'none'],
    ...[`${formatTimestamp(key['expiresOn'])}${String(key['expiresOn']) <= now ? ' (over)' : ''}`],
    formatTimestamp(key['lastUsedOn']),
  ])
  return formatColumns(['id', 'user', 'name', 'key', 'roles', 'until', 'last used'], rows)
}
