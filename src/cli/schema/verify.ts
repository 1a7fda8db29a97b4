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
import { say, withAccounts } from '../app-command.js'
import { inColumns } from '../terminal/columns.js'
import { requireDatabase, withDatabase } from '../open.js'
import { addSettings, readSettings, type Flags } from '../settings/settings.js'

const EXAMPLES = `
Examples:
  $ verso verify --models models
  $ verso verify --rebuild --models models`

const FAILED = 1
const MAX_SHOWN = 20
/** A large table takes its time, and nobody waits for an answer. */
const STATEMENT_MS = 60 * 60_000

interface VerifyFlags extends Flags {
  readonly rebuild?: boolean
}

export function addVerify(program: Command): void {
  const command = program
    .command('verify')
    .description(
      'check that what is stored is whole: pages, records, files and totals, beside a server that may run',
    )
    .option('--rebuild', 'put right the totals that differ')
    .addHelpText('after', EXAMPLES)
  addSettings(command, 'verify').action(async ({ rebuild = false, ...flags }: VerifyFlags) => {
    const { db: url } = readSettings('verify', flags, process.env)
    requireDatabase(url)
    const settings = { statementTimeoutMs: STATEMENT_MS }
    // It needs no tables: where they cannot be read, it says why.
    tell(await withDatabase(url, (db) => runStorageCheck('integrity', checkIntegrity, db), settings))
    const work = async (app: App) => {
      for (const [name, check] of Object.entries(STORAGE_CHECKS))
        tell(await runStorageCheck(name, check, app))
      const counters: StorageCheck<App> = (_, findings) =>
        checkCounters(app, rebuild, (fault) => {
          findings.add(fault)
        })
      tell(await runStorageCheck('totals', counters, app))
    }
    await withAccounts('verify', flags, work, { heading: 'Only the integrity was checked', settings })
  })
}

function tell({ name, summary, findings }: StorageCheckResult): void {
  const { count, lines } = findings
  if (count > 0) process.exitCode = FAILED
  say(`${name}: ${summary}, ${count === 0 ? 'all is right' : pluralize(count, 'fault')}`)
  for (const line of lines) say(`  - ${line}`)
}

async function checkCounters(app: App, mayRebuild: boolean, add: (fault: string) => void): Promise<string> {
  for (const model of app.catalog.storedModels)
    if (!(await verify(app, model, mayRebuild))) add(`the counters of ${model.name} are wrong`)
  return `the counters of ${pluralize(app.catalog.storedModels.length, 'model')} were compared`
}

/** Whether the counters of the model are right, in the end. */
async function verify(app: App, model: Model, mayRebuild: boolean): Promise<boolean> {
  const differences = await findCounterDifferences(app, model)
  if (differences.length === 0) return true
  say(`${model.name}: ${pluralize(differences.length, 'difference')}`)
  say(listing(differences))
  if (!mayRebuild) return false
  await rebuildCounters(app, model)
  const left = await findCounterDifferences(app, model)
  say(left.length === 0 ? `${model.name} is right now` : `${model.name} still differs:\n${listing(left)}`)
  return left.length === 0
}

function listing(differences: readonly CounterMismatch[]): string {
  // What is counted most says most.
  const shown = [...differences].reverse().slice(0, MAX_SHOWN)
  const rows = shown.map(({ what, counted: kept, stored }) => [what, String(kept), String(stored)])
  const more = differences.length > MAX_SHOWN ? `\nand ${differences.length - MAX_SHOWN} more` : ''
  return inColumns(['WHAT', 'COUNTED', 'STORED'], rows) + more
}
