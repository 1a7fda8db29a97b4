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
  VERIFICATION_LIMITS,
  runStorageCheck,
  type StorageCheck,
  type StorageCheckResult,
} from '../../service/maintenance/verification.js'
import { withCommandApp } from '../app-command.js'
import {
  addJsonFlag,
  formatTable,
  printJson,
  printLine,
  type JsonFlag,
  type ListingColumn,
} from '../terminal/listing.js'
import { requireDatabaseFile, useDatabase } from '../open.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'

const EXAMPLES = `
Examples:
  $ verso verify --models models
  $ verso verify --rebuild --models models`

const EXIT_ERRORS = 1
const MAX_SHOWN_DIFFERENCES = 20
/** A scan of a large table takes long, and no request waits for it. */
const VERIFY_STATEMENT_TIMEOUT_MS = 60 * 60_000

const DIFFERENCE_COLUMNS: readonly ListingColumn<CounterMismatch>[] = [
  { heading: 'subject', format: ({ what }) => what },
  { heading: 'counter', format: ({ counted }) => String(counted) },
  { heading: 'records', format: ({ stored }) => String(stored) },
]

interface VerifyFlags extends Flags {
  readonly rebuild?: boolean
}

export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify')
    .description('check the stored data: integrity, records against the change log, files, totals')
    .option('--rebuild', 'correct wrong totals')
    .addHelpText('after', EXAMPLES)
  addJsonFlag(addSettingFlags(command, 'verify')).action(
    async ({ rebuild = false, json = false, ...flags }: VerifyFlags & JsonFlag) => {
      const report = json ? new JsonVerification() : new TextVerification()
      try {
        await runChecks(flags, rebuild, report)
      } finally {
        report.finish()
      }
    },
  )
}

async function runChecks(flags: Flags, mayRebuild: boolean, report: VerificationReport): Promise<void> {
  const { db: url } = readSettings('verify', flags, process.env)
  requireDatabaseFile(url)
  const settings = { statementTimeoutMs: VERIFY_STATEMENT_TIMEOUT_MS }
  const addResult = (result: StorageCheckResult) => {
    if (result.findings.count > 0) process.exitCode = EXIT_ERRORS
    report.addResult(result)
  }
  // The integrity check needs no tables. If they cannot be read, it reports why.
  addResult(await useDatabase(url, (db) => runStorageCheck('integrity', checkIntegrity, db), settings))
  const work = async (app: App) => {
    for (const [name, check] of Object.entries(STORAGE_CHECKS))
      addResult(await runStorageCheck(name, check, app))
    const counters: StorageCheck<App> = async (_, findings) => {
      for (const model of app.catalog.storedModels)
        if (!(await verifyCounters(app, model, mayRebuild, report)))
          findings.add(`the counters of ${model.name} are wrong`)
      return `the counters of ${pluralize(app.catalog.storedModels.length, 'model')} were compared`
    }
    addResult(await runStorageCheck('totals', counters, app))
  }
  await withCommandApp('verify', flags, work, { heading: 'Only the integrity was checked', settings })
}

/** Returns true if the counters of the model are right, possibly after a rebuild. */
async function verifyCounters(
  app: App,
  model: Model,
  mayRebuild: boolean,
  report: VerificationReport,
): Promise<boolean> {
  const differences = await findCounterDifferences(app, model)
  if (differences.length === 0) return true
  report.addDifferences(model.name, differences)
  if (!mayRebuild) return false
  await rebuildCounters(app, model)
  const remaining = await findCounterDifferences(app, model)
  report.addRebuild(model.name, remaining)
  return remaining.length === 0
}

/** Receives the results in the order of the checks. */
interface VerificationReport {
  addResult(result: StorageCheckResult): void
  addDifferences(model: string, differences: readonly CounterMismatch[]): void
  /** `remaining` holds the differences after the rebuild. */
  addRebuild(model: string, remaining: readonly CounterMismatch[]): void
  finish(): void
}

/** Prints each result when it is known, because a check of a large database takes long. */
class TextVerification implements VerificationReport {
  addResult({ name, summary, findings: { count, lines } }: StorageCheckResult): void {
    printLine(`${name}: ${summary}, ${count === 0 ? 'no errors' : pluralize(count, 'error')}`)
    for (const line of lines) printLine(`  - ${line}`)
  }

  addDifferences(model: string, differences: readonly CounterMismatch[]): void {
    printLine(`${model}: ${pluralize(differences.length, 'difference')}`)
    printLine(formatDifferences(differences))
  }

  addRebuild(model: string, remaining: readonly CounterMismatch[]): void {
    printLine(
      remaining.length === 0
        ? `${model}: the counters were corrected`
        : `${model}: the counters are still wrong after the rebuild\n${formatDifferences(remaining)}`,
    )
  }

  finish(): void {
    printLine(`not found by any check: ${VERIFICATION_LIMITS}`)
  }
}

/** Collects the results and prints one document at the end, also if a check fails. */
class JsonVerification implements VerificationReport {
  readonly #checks: object[] = []
  readonly #counters = new Map<string, object>()
  #errorCount = 0

  addResult({ name, summary, findings: { count, lines } }: StorageCheckResult): void {
    this.#errorCount += count
    // The last line of a shortened list is a remark, not an error.
    const errors = lines.filter((line) => line !== `and ${count - lines.length + 1} more`)
    this.#checks.push({ name, summary, errorCount: count, errors })
  }

  addDifferences(model: string, differences: readonly CounterMismatch[]): void {
    this.#counters.set(model, { model, differences: differences.map(toJsonDifference), corrected: false })
  }

  addRebuild(model: string, remaining: readonly CounterMismatch[]): void {
    const corrected = remaining.length === 0
    this.#counters.set(model, {
      ...this.#counters.get(model),
      corrected,
      ...(corrected ? {} : { remaining: remaining.map(toJsonDifference) }),
    })
  }

  finish(): void {
    if (this.#checks.length === 0) return
    printJson({
      errorCount: this.#errorCount,
      notFound: VERIFICATION_LIMITS,
      checks: this.#checks,
      wrongCounters: [...this.#counters.values()],
    })
  }
}

function toJsonDifference({ what, counted, stored }: CounterMismatch): object {
  return { subject: what, counter: counted, records: stored }
}

function formatDifferences(differences: readonly CounterMismatch[]): string {
  // Shows the largest counters first.
  const largest = [...differences].reverse().slice(0, MAX_SHOWN_DIFFERENCES)
  const more = differences.length - largest.length
  return `${formatTable(largest, DIFFERENCE_COLUMNS)}${more > 0 ? `\nand ${more} more` : ''}`
}
