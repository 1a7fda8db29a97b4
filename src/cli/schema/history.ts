import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { pluralize } from '../../model/values/plural.js'
import type { Model } from '../../model/definition/model.js'
import type { App } from '../../service/context/app.js'
import { compactLog } from '../../service/maintenance/retention.js'
import { readHistory } from '../../service/log/history.js'
import { purgeHistory } from '../../service/maintenance/purge.js'
import { SERVICE_PRINCIPAL } from '../../service/context/principal.js'
import type { Change } from '../../wire.js'
import { idFrom, say, subcommand, withAccounts } from '../app-command.js'
import { inColumns, shownMoment } from '../terminal/columns.js'
import { readSettings, type Flags } from '../settings/settings.js'

const EXAMPLES = `
Examples:
  $ verso history show crm.Contact 7 --models models
  $ verso history purge crm.Contact 7 --models models
  $ verso history compact --history 90d`

interface ShowFlags extends Flags {
  readonly limit?: string
}

interface PurgeFlags extends Flags {
  readonly yes?: boolean
}

const MAX_VALUE_LENGTH = 40
const UNSHOWN = 'Nothing is shown'
const UNCHANGED = 'Nothing was changed'

export function addHistoryCommands(program: Command): void {
  const command = program.command('history').description('look at the past of records, and remove it')
  command.addHelpText('after', EXAMPLES)
  subcommand(command, 'history', 'show <model> <id>', 'show what became of a record, the newest first')
    .option('--limit <number>', 'how many Changes', '40')
    .action(async (name: string, id: string, { limit, ...flags }: ShowFlags) => {
      const record = idFrom(id, UNSHOWN)
      const show = async (app: App) => {
        const { data, total } = await readHistory(
          app,
          SERVICE_PRINCIPAL,
          modelOf(app, name, UNSHOWN),
          record,
          { limit },
        )
        say(listing(data))
        if (total > data.length) say(`and ${total - data.length} more`)
      }
      await withAccounts('history', flags, show, { heading: UNSHOWN })
    })
  subcommand(command, 'history', 'purge <model> <id>', 'remove what a record held in the past, for good')
    .option('--yes', 'do not ask')
    .action(async (name: string, id: string, flags: PurgeFlags) => {
      const record = idFrom(id)
      await withAccounts('history', flags, async (app) => {
        const model = modelOf(app, name, UNCHANGED)
        if (!flags.yes) await confirm(`Remove what ${name} ${record} held in the past, for good?`)
        const { changes, isThere } = await purgeHistory(app, model, record)
        say(`what ${pluralize(changes, 'Change')} told of ${name} ${record} was removed`)
        say(isThere ? 'the record itself stays as it is' : 'it was deleted, and cannot come back')
        say(
          'answers that are kept for repeated requests may still show it, for 24 hours; so do backups and whoever has read it',
        )
      })
    })
  subcommand(
    command,
    'compact',
    'compact',
    'remove now what is older than the setting --history keeps',
  ).action(async (flags: Flags) => {
    const { history: retention } = readSettings('compact', flags, process.env)
    await withAccounts('compact', flags, async (app) => {
      if (retention === 'all') say('nothing to do: --history is all')
      else say(`${pluralize(await compactLog(app, undefined, retention), 'Change')} removed`)
    })
  })
}

function modelOf({ catalog }: App, name: string, heading: string): Model {
  const model = catalog.find(name)
  if (model) return model
  throw new ConfigError(heading, [
    `there is no model ${name} here: name the models of the server with --models`,
  ])
}

async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new ConfigError(UNCHANGED, ['there is nobody to ask: say --yes to remove it for good'])
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const answer = await terminal.question(`${question} (yes/no) `)
    if (answer.trim() !== 'yes') throw new ConfigError(UNCHANGED, ['the answer was not yes'])
  } finally {
    terminal.close()
  }
}

function listing(changes: readonly Change[]): string {
  const rows = changes.map(({ version, action, on, by, purged, changes: made }) => [
    ...[String(version), action, shownMoment(on), by?.name ?? (by ? String(by.id) : 'the service')],
    purged ? '(purged)' : inShort(made),
  ])
  return inColumns(['VERSION', 'ACTION', 'WHEN', 'WHO', 'WHAT'], rows)
}

function inShort(made: Change['changes']): string {
  return Object.entries(made)
    .map(([name, { before, after }]) => `${name}: ${shown(before)} → ${shown(after)}`)
    .join('; ')
}

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH - 1)}…` : text
}
