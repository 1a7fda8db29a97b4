import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { ACTION_FIELDS } from '../../model/access/permission-record.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import type { App } from '../../service/context/app.js'
import {
  addRole,
  removePermission,
  listPermissions,
  addPermission,
  removeRole,
  requireRole,
} from '../../service/auth/role-records.js'
import { listRoles } from '../../service/auth/roles.js'
import { readNames, listUserRecords } from '../../service/auth/accounts.js'
import type { WireRecord } from '../../wire.js'
import { parseIdArgument, writeLine, addSubcommand, withCommandApp } from '../app-command.js'
import { formatColumns } from '../terminal/columns.js'
import type { Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Nobody may do anything unless a role of theirs permits it. With --models, names of models, conditions and fields are checked.

Examples:
  $ verso role add assistant --description "Helps out"
  $ verso role permit assistant crm.Contact --read --readable fullName,email
  $ verso role permit assistant crm.Contact --update --condition "createdBy = :user" --models models
  $ verso role show assistant
  $ verso role forbid assistant 7
  $ verso user roles ada --add assistant`

const UNCHECKED_WARNING =
  'whether there are such models and fields was not checked: that needs the models of the server, with --models'

interface RoleAddFlags extends Flags {
  readonly description?: string
  readonly admin?: boolean
}

interface RolePermitFlags extends Flags {
  readonly condition?: string
  readonly readable?: string
  readonly writable?: string
}

const ACTION_DESCRIPTIONS: Readonly<Record<PermissionAction, string>> = {
  read: 'find and read records',
  create: 'make records',
  update: 'change records',
  remove: 'remove records',
  export: 'export what may be read',
}

export function addRoleCommands(program: Command): void {
  const role = program.command('role').description('say what users may do')
  role.addHelpText('after', EXAMPLES)

  addSubcommand(role, 'role', 'list', 'list the roles').action(async (flags: Flags) => {
    await withCommandApp('role', flags, async (app) => {
      writeLine(await formatRoles(app))
    })
  })
  addSubcommand(role, 'role', 'show <role>', 'show what a role permits, and who has it').action(
    async (name: string, flags: Flags) => {
      await withCommandApp('role', flags, async (app) => {
        writeLine(await formatRole(app, name))
      })
    },
  )
  addSubcommand(role, 'role', 'add <role>', 'add a role, which permits nothing yet')
    .option('--description <text>', 'what it is for')
    .option('--admin', 'permits everything')
    .action(async (name: string, flags: RoleAddFlags) => {
      await withCommandApp('role', flags, async (app) => {
        await addRole(app, { name, description: flags.description, admin: flags.admin })
        writeLine(`added the role ${name}${flags.admin ? ', which permits everything' : ''}`)
      })
    })
  addPermitCommand(role)
  addSubcommand(role, 'role', 'forbid <role> <permission>', 'take a permission away, by its id').action(
    async (name: string, id: string, flags: Flags) => {
      const permission = parseIdArgument(id)
      await withCommandApp('role', flags, async (app) => {
        await removePermission(app, name, permission)
        writeLine(`${name} no longer has permission ${permission}`)
      })
    },
  )
  addSubcommand(role, 'role', 'remove <role>', 'remove a role; whoever has it has it no more').action(
    async (name: string, flags: Flags) => {
      await withCommandApp('role', flags, async (app) => {
        await removeRole(app, name)
        writeLine(`removed the role ${name}`)
      })
    },
  )
}

function addPermitCommand(role: Command): void {
  const command = addSubcommand(
    role,
    'role',
    'permit <role> <model>',
    'permit something with the records of a model',
  )
  for (const action of PERMISSION_ACTIONS) command.option(`--${action}`, ACTION_DESCRIPTIONS[action])
  command
    .option('--condition <filter>', 'only with records that meet it, as in: createdBy = :user')
    .option('--readable <fields>', 'only these fields, separated by commas')
    .option('--writable <fields>', 'only these fields, separated by commas')
    .action(async (name: string, model: string, flags: RolePermitFlags) => {
      const actions = PERMISSION_ACTIONS.filter((action) => flags[action] === true)
      if (actions.length === 0)
        throw new ConfigError('Nothing was changed', [
          `say what is permitted: ${PERMISSION_ACTIONS.map((action) => `--${action}`).join(', ')}`,
        ])
      const { condition = null, readable, writable } = flags
      const permission = {
        model,
        condition,
        readable: parseFieldList(readable),
        writable: parseFieldList(writable),
        ...Object.fromEntries(actions.map((action) => [ACTION_FIELDS[action], true])),
      }
      await withCommandApp('role', flags, async (app) => {
        const { id } = await addPermission(app, name, permission)
        writeLine(
          `${name} has permission ${id}: ${actions.join(', ')} ${model}${describePermissionLimits(permission)}`,
        )
        if (app.catalog.models.length === 0) process.stderr.write(`${UNCHECKED_WARNING}\n`)
      })
    })
}

interface PermissionLimits {
  readonly condition: string | null
  readonly readable: readonly string[] | null
  readonly writable: readonly string[] | null
}

/**
 * Describes the condition and the field lists that restrict a permission; empty if it covers all records and fields.
 */
function describePermissionLimits({ condition, readable, writable }: PermissionLimits): string {
  const joinFields = (list: readonly string[]) => list.join(', ') || 'no field'
  return [
    condition === null ? '' : ` where ${condition}`,
    readable ? `; readable: ${joinFields(readable)}` : '',
    writable ? `; writable: ${joinFields(writable)}` : '',
  ].join('')
}

/** Parses a comma-separated list. Undefined means all fields (null); an empty text means none. */
function parseFieldList(text: string | undefined): readonly string[] | null {
  if (text === undefined) return null
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

async function formatRoles(app: App): Promise<string> {
  const rows = (await listRoles(app)).map((role) => [
    String(role.id),
    String(role['name']),
    role['admin'] === true ? 'everything' : describePermissionCount(role['permissions']),
    toText(role['description']),
  ])
  return formatColumns(['id', 'role', 'permits', 'description'], rows)
}

function describePermissionCount(list: unknown): string {
  const count = Array.isArray(list) ? list.length : 0
  return count === 0 ? 'nothing' : count === 1 ? '1 permission' : `${count} permissions`
}

async function formatRole(app: App, name: string): Promise<string> {
  const role = await requireRole(app, name)
  const head = `${name}: ${toText(role['description']) || 'no description'}`
  const permissions = await listPermissions(app, role)
  const people = (await listUserRecords(app)).filter((user) => readNames(user['roles']).includes(name))
  const permitted =
    role['admin'] === true
      ? 'permits everything'
      : permissions.length === 0
        ? 'permits nothing; to change that, run: verso role permit'
        : formatColumns(
            ['id', 'model', 'actions', 'condition', 'readable', 'writable'],
            permissions.map(toPermissionRow),
          )
  return [
    head,
    '',
    permitted,
    '',
    `users: ${people.map(({ username }) => String(username)).join(', ') || 'none'}`,
  ].join('\n')
}

function toPermissionRow(permission: WireRecord): string[] {
  const actions = PERMISSION_ACTIONS.filter((action) => permission[ACTION_FIELDS[action]] === true)
  const { condition, readable, writable } = permission
  const joinFields = (list: unknown) => (Array.isArray(list) ? list.join(',') || 'none' : 'all')
  return [
    ...[String(permission.id), String(permission['model']), actions.join(',')],
    ...[toText(condition) || 'all', joinFields(readable), joinFields(writable)],
  ]
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
