// Lists the hooks of models in the order in which they run, and the failures of those that run after the commit.
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import {
  listCommitHooks,
  TRANSACTION_HOOK_NAMES,
  type HookName,
  type HooksOf,
  type TransactionHookName,
} from '../../model/definition/hooks.js'
import { isModelExtension } from '../../model/definition/extend-model.js'
import type { Model } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import type { Database } from '../../store/engine/database.js'
import { listScheduleStates, type ScheduleState } from '../../store/hooks/schedules.js'
import { pluralize } from '../../model/values/plural.js'
import { isObject } from '../../model/values/value.js'
import { AUTH_HOOKS } from '../../service/auth/hooks.js'
import {
  describeHookLag,
  discardFailedHooks,
  listFailedHooks,
  retryFailedHooks,
  type FailedHook,
  type HookLag,
} from '../../service/background/commit-status.js'
import { formatInterval } from '../../service/background/schedule.js'
import { WEBHOOK_HOOKS } from '../../service/webhooks/hooks.js'
import { addSubcommand, NOTHING_CHANGED, parseIdArgument, withCommandApp } from '../app-command.js'
import { loadModelsWithReport, type LoadedModels } from '../models/models.js'
import { requireDatabaseFile, useDatabase } from '../open.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import {
  addJsonFlag,
  formatTimestamp,
  printLine,
  printListing,
  printNote,
  type JsonFlag,
  type ListingColumn,
} from '../terminal/listing.js'

const EXAMPLES = `
Examples:
  $ verso hooks --models models                 list the models that have hooks
  $ verso hooks crm.Order --models models       list what runs for a model, in order
  $ verso hooks failed                          list failed runs of afterCommit hooks
  $ verso hooks retry 7 8                       run them again
  $ verso hooks retry --all
  $ verso hooks discard 7                       never run it again
  $ verso hooks schedules                       list schedules with their last and next runs`

const MAX_LISTED_FAILURES = 1_000

/** One hook of a model. */
interface HookRow {
  readonly model: string
  /** When it runs: the name of the hook, or `check`. */
  readonly hook: string
  /** The name of an `afterCommit` function, or the condition of a check. */
  readonly name: string | null
  /** The file that declares it, or the built-in rules. */
  readonly from: string
  /** How far an `afterCommit` hook has come; null for others, and if the database is not known. */
  readonly state: HookState | null
}

type HookState = Pick<HookLag, 'lag' | 'waiting' | 'dead'>

const HOOK_COLUMNS: readonly ListingColumn<HookRow>[] = [
  { heading: 'hook', format: ({ hook, name }) => (name === null ? hook : `${hook} ${name}`) },
  { heading: 'from', format: ({ from }) => from },
  { heading: 'state', format: ({ state }) => (state ? formatState(state) : '') },
]

const FAILURE_COLUMNS: readonly ListingColumn<FailedHook>[] = [
  { heading: 'id', format: ({ id }) => String(id) },
  { heading: 'hook', format: ({ hook }) => hook },
  { heading: 'record', format: ({ record }) => String(record) },
  { heading: 'change', format: ({ seq }) => String(seq) },
  { heading: 'attempts', format: ({ attempts }) => String(attempts) },
  { heading: 'next attempt', format: formatNextAttempt },
  { heading: 'error', format: ({ error }) => error ?? '' },
]

const SCHEDULE_COLUMNS: readonly ListingColumn<ScheduleState>[] = [
  { heading: 'schedule', format: ({ name }) => name },
  { heading: 'every', format: ({ intervalMs }) => formatInterval(intervalMs) },
  {
    heading: 'last run',
    format: ({ lastMs }) => formatTimestamp(lastMs === null ? null : toIsoTime(lastMs)),
  },
  {
    heading: 'next run',
    format: ({ lease, nextMs }) => (lease === null ? formatTimestamp(toIsoTime(nextMs)) : 'running'),
  },
  { heading: 'error of the last run', format: ({ error }) => error ?? '' },
]

function toIsoTime(ms: number): string {
  return new Date(ms).toISOString()
}

export function addHooksCommands(program: Command): void {
  const command = program
    .command('hooks [model]')
    .description('list the hooks of models, and schedules; list, repeat and discard failed hooks')
    .addHelpText('after', EXAMPLES)
  addJsonFlag(addSettingFlags(command, 'hooks')).action(
    async (name: string | undefined, { json = false, ...flags }: Flags & JsonFlag) =>
      printHooks(name, flags, json),
  )
  addJsonFlag(
    addSubcommand(
      command,
      'hook-failures',
      'failed',
      'list changes for which an afterCommit hook failed, and changes that wait behind them',
    ),
  ).action(async (_: unknown, subcommand: Command) => {
    const { json = false, ...flags } = readAllFlags(subcommand)
    await withCommandApp('hook-failures', flags, async ({ db }) => {
      const failures = await listFailedHooks(db.reader, MAX_LISTED_FAILURES)
      printListing(failures, FAILURE_COLUMNS, { json, ifEmpty: 'no hook has failed' })
      if (failures.length === MAX_LISTED_FAILURES) printNote(`only the first ${failures.length} are shown`)
    })
  })
  addFailureCommand(command, {
    name: 'retry',
    description: 'run failed hooks again, now',
    run: retryFailedHooks,
    outcome: 'will run again, as soon as a server runs',
  })
  addFailureCommand(command, {
    name: 'discard',
    description: 'give up failed hooks: they never run again',
    run: discardFailedHooks,
    outcome: 'discarded',
  })
  addJsonFlag(
    addSubcommand(command, 'hook-failures', 'schedules', 'list schedules with their last and next runs'),
  ).action(async (_: unknown, subcommand: Command) => {
    const { json = false, ...flags } = readAllFlags(subcommand)
    await withCommandApp('hook-failures', flags, async ({ db }) => {
      const schedules = await listScheduleStates(db.reader)
      printListing(schedules, SCHEDULE_COLUMNS, { json, ifEmpty: 'no server has run with a schedule' })
    })
  })
}

/** A command about some failures, or all of them. */
interface FailureCommand {
  readonly name: string
  readonly description: string
  /** Returns the number of Changes. */
  readonly run: (db: Database, ids: readonly number[] | 'all') => Promise<number>
  /** Follows the number of Changes in the printed line. */
  readonly outcome: string
}

function addFailureCommand(command: Command, { name, description, run, outcome }: FailureCommand): void {
  addSubcommand(command, 'hook-failures', `${name} [ids...]`, description)
    .option('--all', 'all that failed')
    .action(async (ids: readonly string[], _: unknown, subcommand: Command) => {
      const { all = false, ...flags } = readAllFlags(subcommand)
      if (all === ids.length > 0)
        throw new ConfigError(NOTHING_CHANGED, [
          'give the ids that "verso hooks failed" lists, or --all for all of them',
        ])
      const chosen = all ? 'all' : ids.map((id) => parseIdArgument(id))
      await withCommandApp('hook-failures', flags, async ({ db }) => {
        const count = await run(db, chosen)
        if (count === 0 && chosen !== 'all')
          throw new ConfigError(NOTHING_CHANGED, [
            `there is no failed run ${chosen.join(', ')}: "verso hooks failed" lists the ids`,
          ])
        printLine(`${pluralize(count, 'change')} ${outcome}`)
      })
    })
}

interface SubcommandFlags extends Flags, JsonFlag {
  readonly all?: boolean
}

/** commander gives the flags that this command and its subcommand share to this command. */
function readAllFlags(subcommand: Command): SubcommandFlags {
  return subcommand.optsWithGlobals<SubcommandFlags>()
}

function formatState({ lag, waiting, dead }: HookState): string {
  if (lag === null) return 'not started yet'
  const failures = [
    ...(waiting > 0 ? [`${waiting} waiting for a retry`] : []),
    ...(dead > 0 ? [`${dead} failed for good`] : []),
  ]
  return [lag === 0 ? 'up to date' : `${pluralize(lag, 'change')} behind`, ...failures].join(', ')
}

function formatNextAttempt({ state, nextAttemptOn }: FailedHook): string {
  if (state === 'dead') return 'none: failed for good'
  if (nextAttemptOn === null) return 'after earlier changes'
  return Date.parse(nextAttemptOn) <= Date.now() ? 'now' : formatTimestamp(nextAttemptOn)
}

async function printHooks(name: string | undefined, flags: Flags, json: boolean): Promise<void> {
  const { db, models: modelsPath } = readSettings('hooks', flags, process.env)
  const loaded = await loadModelsWithReport(modelsPath ?? '')
  const { catalog } = loaded
  const models = name === undefined ? catalog.storedModels : [requireListedModel(catalog, name)]
  const hasConsumers = models.some(({ hooks }) => hooks.some(({ afterCommit }) => afterCommit))
  const states = hasConsumers ? await readHookStates(db, catalog) : new Map<string, HookState>()
  const rows = models.flatMap((model) => listModelHooks(loaded, model, states))
  if (name !== undefined) printListing(rows, HOOK_COLUMNS, { json, ifEmpty: `${name} has no hooks` })
  else {
    const columns = [{ heading: 'model', format: ({ model }: HookRow) => model }, ...HOOK_COLUMNS]
    const own = rows.filter(({ from }) => !from.startsWith(BUILT_IN))
    printListing(own, columns, { json, ifEmpty: 'no model has hooks' })
  }
}

function requireListedModel(catalog: Catalog, name: string): Model {
  const model = catalog.find(name)
  if (model) return model
  const names = catalog.storedModels.map((each) => each.name)
  const sameEnd = names.find((each) => each.toLowerCase().endsWith(`.${name.toLowerCase()}`))
  const suggestion = sameEnd
    ? ` (did you mean "${sameEnd}"?)`
    : didYouMean(name, [...names, 'failed', 'retry', 'discard', 'schedules'])
  throw new ConfigError('The hooks cannot be listed', [
    `there is no model "${name}"${suggestion || ': pass the models of the server with --models'}`,
  ])
}

/** The hooks are listed without their state if the database cannot be read. */
async function readHookStates(url: string, catalog: Catalog): Promise<Map<string, HookState>> {
  try {
    requireDatabaseFile(url)
    const lags = await useDatabase(url, (db) => describeHookLag({ catalog, db: db.reader }))
    return new Map(lags.map(({ hook, lag, waiting, dead }) => [hook, { lag, waiting, dead }]))
  } catch (error) {
    printNote(`the state of afterCommit hooks is not shown. ${error instanceof Error ? error.message : ''}`)
    return new Map()
  }
}

const BUILT_IN = 'built-in rules of'

/** Lists everything that runs for a model, in order. */
function listModelHooks(
  loaded: LoadedModels,
  model: Model,
  states: ReadonlyMap<string, HookState>,
): HookRow[] {
  const row = (hook: string, from: string, name: string | null = null): HookRow => ({
    model: model.name,
    hook,
    name,
    from,
    state: states.get(`${model.name}/${name}`) ?? null,
  })
  const builtIn = (hook: 'prepare' | TransactionHookName) =>
    [...AUTH_HOOKS, ...WEBHOOK_HOOKS].flatMap(([name, hooks]) =>
      name === model.name && hooks[hook] ? row(hook, `${BUILT_IN} ${name}`) : [],
    )
  const own = (hook: HookName) => model.hooks.filter((set) => set[hook])
  const locate = (set: HooksOf) => findHookFile(loaded, model, set)
  const checks = model.checks.map(({ condition }) => row('check', findModelFile(loaded, model), condition))
  return [
    ...builtIn('prepare'),
    ...TRANSACTION_HOOK_NAMES.flatMap((hook) => [
      ...builtIn(hook),
      ...own(hook).map((set) => row(hook, locate(set))),
      // Checks run on the same record as `validate`, after it.
      ...(hook === 'validate' ? checks : []),
    ]),
    ...own('afterCommit').flatMap((set) =>
      listCommitHooks(set.afterCommit).map(({ name }) => row('afterCommit', locate(set), name)),
    ),
  ]
}

function findHookFile(loaded: LoadedModels, model: Model, set: HooksOf): string {
  const extension = loaded.extensions.find(
    ({ definition }) => isModelExtension(definition) && definition.hooks === set,
  )
  return extension ? `${extension.file} (extension)` : findModelFile(loaded, model)
}

function findModelFile({ sources }: LoadedModels, { name }: Model): string {
  const source = sources.find(({ definition }) => isObject(definition) && definition['name'] === name)
  return source?.file ?? 'the service'
}
