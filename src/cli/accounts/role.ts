import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { ACTION_FIELDS } from '../../model/access/permission-record.js'
import { PERMISSION_ACTIONS, type PermissionAction } from '../../model/access/permissions.js'
import { addRole, removePermission, addPermission, removeRole } from '../../service/auth/role-records.js'
import { NOTHING_CHANGED, parseIdArgument, addSubcommand, withCommandApp } from '../app-command.js'
import { addJsonFlag, printLine, printNote, type JsonFlag } from '../terminal/listing.js'
import { printRole, printRoles } from './role-listing.js'
import type { Flags } from '../settings/read-settings.js'

const EXAMPLES = `
A user has no permissions except those of their roles. With --models, this command checks the names of models and fields,
and the conditions.

Examples:
  $ verso role add assistant --description "Helps out"
  $ verso role permit assistant crm.Contact --read --readable fullName,email
  $ verso role permit assistant crm.Contact --update --condition "createdBy = :user" --models models
  $ verso role show assistant
  $ verso role forbid assistant 7
  $ verso user roles ada --add assistant`

const UNCHECKED_WARNING =
  'the names of the model and its fields were not checked; to check them, pass the models of the server with --models'

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
  read: 'permit finding and reading records',
  create: 'permit creating records',
  update: 'permit updating records',
  remove: 'permit deleting records',
  export: 'permit exporting readable records',
}

export function addRoleCommands(program: Command): void {
  const role = program.command('role').description('add, list and change roles and their permissions')
  role.addHelpText('after', EXAMPLES)

  addJsonFlag(addSubcommand(role, 'role', 'list', 'list the roles')).action(
    async ({ json = false, ...flags }: Flags & JsonFlag) => {
      await withCommandApp('role', flags, async (app) => {
        await printRoles(app, json)
      })
    },
  )
  addJsonFlag(
    addSubcommand(role, 'role', 'show <role>', 'show the permissions of a role and the users who have it'),
  ).action(async (name: string, { json = false, ...flags }: Flags & JsonFlag) => {
    await withCommandApp('role', flags, async (app) => {
      await printRole(app, name, json)
    })
  })
  addSubcommand(role, 'role', 'add <role>', 'add a role without permissions')
    .option('--description <text>', 'purpose of the role, shown in lists')
    .option('--admin', 'permit everything')
    .action(async (name: string, flags: RoleAddFlags) => {
      await withCommandApp('role', flags, async (app) => {
        await addRole(app, { name, description: flags.description, admin: flags.admin })
        printLine(`added the role ${name}${flags.admin ? ', which permits everything' : ''}`)
      })
    })
  addPermitCommand(role)
  addSubcommand(
    role,
    'role',
    'forbid <role> <permission>',
    'remove a permission from a role; "role show" lists the ids of permissions',
  ).action(async (name: string, id: string, flags: Flags) => {
    const permission = parseIdArgument(id)
    await withCommandApp('role', flags, async (app) => {
      await removePermission(app, name, permission)
      printLine(`removed permission ${permission} from ${name}`)
    })
  })
  addSubcommand(role, 'role', 'remove <role>', 'remove a role, also from the users who have it').action(
    async (name: string, flags: Flags) => {
      await withCommandApp('role', flags, async (app) => {
        await removeRole(app, name)
        printLine(`removed the role ${name}`)
      })
    },
  )
}

function addPermitCommand(role: Command): void {
  const command = addSubcommand(
    role,
    'role',
    'permit <role> <model>',
    'add a permission for the records of a model to a role',
  )
  for (const action of PERMISSION_ACTIONS) command.option(`--${action}`, ACTION_DESCRIPTIONS[action])
  command
    .option(
      '--condition <filter>',
      'limit the permission to matching records, for example: createdBy = :user',
    )
    .option('--readable <fields>', 'limit reading to these fields, separated by commas; default: all fields')
    .option('--writable <fields>', 'limit writing to these fields, separated by commas; default: all fields')
    .action(async (name: string, model: string, flags: RolePermitFlags) => {
      const actions = PERMISSION_ACTIONS.filter((action) => flags[action] === true)
      if (actions.length === 0)
        throw new ConfigError(NOTHING_CHANGED, [
          `name at least one action: ${PERMISSION_ACTIONS.map((action) => `--${action}`).join(', ')}`,
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
        printLine(
          `added permission ${id} to ${name}: ${actions.join(', ')} ${model}${describePermissionLimits(permission)}`,
        )
        if (app.catalog.models.length === 0) printNote(UNCHECKED_WARNING)
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
  const joinFields = (list: readonly string[]) => list.join(', ') || 'none'
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
