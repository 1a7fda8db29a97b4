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
import { NOTHING_CHANGED, parseIdArgument, addSubcommand, withCommandApp } from '../app-command.js'
import {
  addJsonFlag,
  formatTimestamp,
  printLine,
  printListing,
  printNote,
  type JsonFlag,
  type ListingColumn,
} from '../terminal/listing.js'
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
const NOTHING_SHOWN = 'The history cannot be shown'

const CHANGE_COLUMNS: readonly ListingColumn<Change>[] = [
  { heading: 'version', format: ({ version }) => String(version) },
  { heading: 'action', format: ({ action }) => action },
  { heading: 'time', format: ({ on }) => formatTimestamp(on) },
  { heading: 'user', format: ({ by }) => by?.name ?? (by ? String(by.id) : 'the service') },
  {
    heading: 'changes',
    format: ({ purged, changes }) => (purged ? '(purged)' : summarizeFieldChanges(changes)),
  },
]

export function addHistoryCommands(program: Command): void {
  const command = program
    .command('history')
    .description('show, purge and compact the change log (audit log) of records')
  command.addHelpText('after', EXAMPLES)
  addJsonFlag(
    addSubcommand(command, 'history', 'show <model> <id>', 'list the changes of a record, newest first'),
  )
    .option('--limit <number>', 'maximum number of changes', '40')
    .action(
      async (name: string, id: string, { limit, json = false, ...flags }: HistoryShowFlags & JsonFlag) => {
        const record = parseIdArgument(id, NOTHING_SHOWN)
        const show = async (app: App) => {
          const { data, total } = await readHistory(
            createContext(app, SERVICE_PRINCIPAL),
            requireNamedModel(app, name, NOTHING_SHOWN),
            record,
            { limit },
          )
          printListing(data, CHANGE_COLUMNS, { json })
          if (total > data.length)
            printNote(`${data.length} of ${total} changes are shown; to show more, use --limit`)
        }
        await withCommandApp('history', flags, show, { heading: NOTHING_SHOWN })
      },
    )
  addSubcommand(
    command,
    'history',
    'purge <model> <id>',
    'remove the past values of a record from the change log, permanently',
  )
    .option('--yes', 'skip the confirmation')
    .action(async (name: string, id: string, flags: HistoryPurgeFlags) => {
      const record = parseIdArgument(id)
      await withCommandApp('history', flags, async (app) => {
        const model = requireNamedModel(app, name, NOTHING_CHANGED)
        if (!flags.yes)
          await confirmRemoval(`Remove the past values of ${name} ${record} from the change log permanently?`)
        const { changes, isThere } = await purgeHistory(app, model, record)
        printLine(`removed the values of ${pluralize(changes, 'change')} of ${name} ${record}`)
        printLine(
          isThere ? 'the record itself is unchanged' : 'the record is deleted and can no longer be restored',
        )
        printLine(
          'stored responses for repeated requests (Idempotency-Key) may contain the values for up to 24 hours; backups and copies that clients have read keep them',
        )
      })
    })
  addSubcommand(
    command,
    'compact',
    'compact',
    'remove the changes that --retention does not keep from the change log, now',
  ).action(async (flags: Flags) => {
    const { retention } = readSettings('compact', flags, process.env)
    await withCommandApp('compact', flags, async (app) => {
      if (retention === 'all') printLine('nothing to remove: --retention is all')
      else printLine(`removed ${pluralize(await compactLog(app, undefined, retention), 'change')}`)
    })
  })
}

function requireNamedModel({ catalog }: App, name: string, heading: string): Model {
  const model = catalog.find(name)
  if (model) return model
  throw new ConfigError(heading, [`there is no model ${name}: pass the models of the server with --models`])
}

async function confirmRemoval(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new ConfigError(NOTHING_CHANGED, [
      'standard input is not a terminal, so the command cannot ask for confirmation; to remove the values permanently, pass --yes',
    ])
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    const answer = await terminal.question(`${question} (yes/no) `)
    if (answer.trim() !== 'yes')
      throw new ConfigError(NOTHING_CHANGED, ['the removal was not confirmed with "yes"'])
  } finally {
    terminal.close()
  }
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
