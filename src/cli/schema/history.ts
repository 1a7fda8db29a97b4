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
import { NOTHING_CHANGED, parseIdArgument, writeLine, addSubcommand, withCommandApp } from '../app-command.js'
import { formatColumns, formatTimestamp } from '../terminal/columns.js'
import { readSettings, type Flags } from '../settings/read-settings.js'
import { createContext } from '../../service/context/context.js'

const EXAMPLES = `
Examples:
  $ verso history show crm.Contact 7 --models models
  $ verso history purge crm.Contact 7 --models models
  $ verso history compact --retention 90d`

interface HistoryShowFlags extends Flags {
  readonly limit?: string
}

interface HistoryPurgeFlags extends Flags {
  readonly yes?: boolean
}

const MAX_VALUE_LENGTH = 40
const NOTHING_SHOWN = 'Nothing is shown'

export function addHistoryCommands(program: Command): void {
  const command = program.command('history').description('look at the past of records, and remove it')
  command.addHelpText('after', EXAMPLES)
  addSubcommand(command, 'history', 'show <model> <id>', 'show what became of a record, the newest first')
    .option('--limit <number>', 'how many Changes', '40')
    .action(async (name: string, id: string, { limit, ...flags }: HistoryShowFlags) => {
      const record = parseIdArgument(id, NOTHING_SHOWN)
      const show = async (app: App) => {
        const { data, total } = await readHistory(
          createContext(app, SERVICE_PRINCIPAL),
          requireNamedModel(app, name, NOTHING_SHOWN),
          record,
          { limit },
        )
        writeLine(formatChanges(data))
        if (total > data.length) writeLine(`and ${total - data.length} more`)
      }
      await withCommandApp('history', flags, show, { heading: NOTHING_SHOWN })
    })
  addSubcommand(command, 'history', 'purge <model> <id>', 'remove what a record held in the past, for good')
    .option('--yes', 'do not ask')
    .action(async (name: string, id: string, flags: HistoryPurgeFlags) => {
      const record = parseIdArgument(id)
      await withCommandApp('history', flags, async (app) => {
        const model = requireNamedModel(app, name, NOTHING_CHANGED)
        if (!flags.yes) await confirmRemoval(`Remove what ${name} ${record} held in the past, for good?`)
        const { changes, isThere } = await purgeHistory(app, model, record)
        writeLine(`what ${pluralize(changes, 'Change')} told of ${name} ${record} was removed`)
        writeLine(isThere ? 'the record itself stays as it is' : 'it was deleted, and cannot come back')
        writeLine(
          'answers that are kept for repeated requests may still show it, for 24 hours; so do backups and whoever has read it',
        )
      })
    })
  addSubcommand(
    command,
    'compact',
    'compact',
    'remove now what is older than the setting --retention keeps',
  ).action(async (flags: Flags) => {
    const { retention } = readSettings('compact', flags, process.env)
    await withCommandApp('compact', flags, async (app) => {
      if (retention === 'all') writeLine('nothing to do: --retention is all')
      else writeLine(`${pluralize(await compactLog(app, undefined, retention), 'Change')} removed`)
    })
  })
}

function requireNamedModel({ catalog }: App, name: string, heading: string): Model {
  const model = catalog.find(name)
  if (model) return model
  throw new ConfigError(heading, [
    `there is no model ${name} here: name the models of the server with --models`,
  ])
}

async function confirmRemoval(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new ConfigError(NOTHING_CHANGED, ['there is nobody to ask: say --yes to remove it for good'])
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const answer = await terminal.question(`${question} (yes/no) `)
    if (answer.trim() !== 'yes') throw new ConfigError(NOTHING_CHANGED, ['the answer was not yes'])
  } finally {
    terminal.close()
  }
}

function formatChanges(changes: readonly Change[]): string {
  const rows = changes.map(({ version, action, on, by, purged, changes: fieldChanges }) => [
    ...[String(version), action, formatTimestamp(on), by?.name ?? (by ? String(by.id) : 'the service')],
    purged ? '(purged)' : summarizeFieldChanges(fieldChanges),
  ])
  return formatColumns(['VERSION', 'ACTION', 'WHEN', 'WHO', 'WHAT'], rows)
}

function summarizeFieldChanges(fieldChanges: Change['changes']): string {
  return Object.entries(fieldChanges)
    .map(([name, { before, after }]) => `${name}: ${truncateValue(before)} → ${truncateValue(after)}`)
    .join('; ')
}

function truncateValue(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH - 1)}…` : text
}
