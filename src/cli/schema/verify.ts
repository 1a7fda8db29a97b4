import type { Command } from 'commander'
import { pluralize } from '../../model/values/plural.js'
import type { Model } from '../../model/definition/model.js'
import type { App } from '../../service/context/app.js'
import {
  findCounterDifferences,
  rebuildCounters,
  type CounterMismatch,
} from '../../service/maintenance/counters.js'
import {
  checkIntegrity,
  STORAGE_CHECKS,
  runStorageCheck,
  type StorageCheck,
  type StorageCheckResult,
} from '../../service/maintenance/verification.js'
import { writeLine, withCommandApp } from '../app-command.js'
import { formatColumns } from '../terminal/columns.js'
import { requireDatabaseFile, useDatabase } from '../open.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Examples:
  $ verso verify --models models
  $ verso verify --rebuild --models models`

const EXIT_FAULTS = 1
const MAX_SHOWN_DIFFERENCES = 20
/** A scan of a large table takes long, and no request waits for it. */
const VERIFY_STATEMENT_TIMEOUT_MS = 60 * 60_000

interface VerifyFlags extends Flags {
  readonly rebuild?: boolean
}

export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify')
    .description(
      'check that what is stored is whole: pages, records, files and totals, beside a server that may run',
    )
    .option('--rebuild', 'put right the totals that differ')
    .addHelpText('after', EXAMPLES)
  addSettingFlags(command, 'verify').action(async ({ rebuild = false, ...flags }: VerifyFlags) => {
    const { db: url } = readSettings('verify', flags, process.env)
    requireDatabaseFile(url)
    const settings = { statementTimeoutMs: VERIFY_STATEMENT_TIMEOUT_MS }
    // The integrity check needs no tables. If they cannot be read, it reports why.
    printCheckResult(
      await useDatabase(url, (db) => runStorageCheck('integrity', checkIntegrity, db), settings),
    )
    const work = async (app: App) => {
      for (const [name, check] of Object.entries(STORAGE_CHECKS))
        printCheckResult(await runStorageCheck(name, check, app))
      const counters: StorageCheck<App> = (_, findings) =>
        checkAllCounters(app, rebuild, (error) => {
          findings.add(error)
        })
      printCheckResult(await runStorageCheck('totals', counters, app))
    }
    await withCommandApp('verify', flags, work, { heading: 'Only the integrity was checked', settings })
  })
}

function printCheckResult({ name, summary, findings }: StorageCheckResult): void {
  const { count, lines } = findings
  if (count > 0) process.exitCode = EXIT_FAULTS
  writeLine(`${name}: ${summary}, ${count === 0 ? 'all is right' : pluralize(count, 'fault')}`)
  for (const line of lines) writeLine(`  - ${line}`)
}

async function checkAllCounters(
  app: App,
  mayRebuild: boolean,
  add: (fault: string) => void,
): Promise<string> {
  for (const model of app.catalog.storedModels)
    if (!(await verifyCounters(app, model, mayRebuild))) add(`the counters of ${model.name} are wrong`)
  return `the counters of ${pluralize(app.catalog.storedModels.length, 'model')} were compared`
}

/** Returns true if the counters of the model are right, possibly after a rebuild. */
async function verifyCounters(app: App, model: Model, mayRebuild: boolean): Promise<boolean> {
  const differences = await findCounterDifferences(app, model)
  if (differences.length === 0) return true
  writeLine(`${model.name}: ${pluralize(differences.length, 'difference')}`)
  writeLine(formatDifferences(differences))
  if (!mayRebuild) return false
  await rebuildCounters(app, model)
  const left = await findCounterDifferences(app, model)
  writeLine(
    left.length === 0
      ? `${model.name} is right now`
      : `${model.name} still differs:\n${formatDifferences(left)}`,
  )
  return left.length === 0
}

function formatDifferences(differences: readonly CounterMismatch[]): string {
  // Shows the largest counters first.
  const largest = [...differences].reverse().slice(0, MAX_SHOWN_DIFFERENCES)
  const rows = largest.map(({ what, counted, stored }) => [what, String(counted), String(stored)])
  const more =
    differences.length > MAX_SHOWN_DIFFERENCES
      ? `\nand ${differences.length - MAX_SHOWN_DIFFERENCES} more`
      : ''
  return formatColumns(['WHAT', 'COUNTED', 'STORED'], rows) + more
}
