// Builds the App: the only place where the parts of the service are created and connected.
import { pino, type Logger } from 'pino'
import { summarizeError, unwrapLoggedCause } from '../errors.js'
import { Catalog, type ModelSource } from '../model/catalog/catalog.js'
import { RESTART_REASON } from '../store/engine/write-health.js'
import type { Database } from '../store/engine/database.js'
import { openDatabase } from '../store/open.js'
import { applySchema } from '../store/schema/apply.js'
import type { SchemaPlan } from '../store/schema/plan.js'
import { StagingArea } from '../store/engine/staging.js'
import { SearchPlans } from '../store/find/search-plan.js'
import { TableSizes } from '../store/find/table-sizes.js'
import { Tables } from '../store/sql/table.js'
import type { App, Clock } from './context/app.js'
import { ChangeWaiters } from './context/change-waiters.js'
import { Authorizer } from './context/authorizer.js'
import { ReadinessSources } from './context/readiness.js'
import { SessionCache } from './context/session-cache.js'
import { ClockSync } from './clock/clock-sync.js'
import { planWrite } from './write/write-plan.js'
import { startHousekeeping } from './maintenance/housekeeping.js'
import { syncMetaModels } from './maintenance/meta-models.js'
import { AUTH_HOOKS, PERMISSIONS_VERSION_HOOKS, REVOCATION_HOOKS } from './auth/hooks.js'
import { ensureDefaultRoles } from './auth/roles.js'
import { composeHooks } from './context/hooks.js'
import { guardProcess } from './background/background-task.js'
import { registerCommitHooks, startCommitHooks } from './background/commit-hooks.js'
import { checkSchedules, type Schedule } from './background/schedule.js'
import { startSchedules } from './background/schedule-runner.js'
import { createDefinitionHooks } from './hooks/definition-hooks.js'
import { WEBHOOK_CURSOR_HOOKS, WEBHOOK_HOOKS } from './webhooks/hooks.js'
import { DEFAULT_SETTINGS, type Settings } from './context/settings.js'
import type { EgressOptions } from './egress/call.js'
import { startDeliveryWorkers } from './webhooks/delivery.js'
import { resolveHost } from './egress/destination.js'
import { EgressPolicy } from './egress/egress-policy.js'

export interface AppOptions {
  readonly settings?: Partial<Settings>
  /** Models as written by `defineModel` or read from files, or the catalog of them. */
  readonly models: readonly ModelSource[] | Catalog
  /** The clock of the database by default. */
  readonly clock?: Clock
  readonly log?: Logger
  /** Replaces the database that the settings name. */
  readonly database?: Database
  /** Delivers webhooks, and runs `afterCommit` hooks and schedules, in this process. At least one node must do so. */
  readonly runsBackgroundWork?: boolean
  /** Work at intervals. The nodes that run background work need the same schedules. */
  readonly schedules?: readonly Schedule[]
  /** Overrides the options of webhook calls. */
  readonly outgoing?: Partial<Omit<EgressOptions, 'egressPolicy'>>
  /** Called after the tables were migrated, also if there was nothing to do. */
  readonly onSchemaApplied?: (plan: SchemaPlan) => void
  /** Called after a disk failure that only a restart can repair. */
  readonly onBroken?: (error: unknown) => void
}

const DEFAULT_EGRESS_OPTIONS: Omit<EgressOptions, 'egressPolicy'> = {
  resolve: resolveHost,
  timeoutMs: 10_000,
  userAgent: 'verso',
}

/** The order of the transaction hooks is the order in which every node locks their rows. */
const TRANSACTION_HOOKS = [PERMISSIONS_VERSION_HOOKS, WEBHOOK_CURSOR_HOOKS, REVOCATION_HOOKS]

/** The staging area has room for this many answers of the largest size. */
const MAX_STAGED_ANSWERS = 16

/**
 * Checks the models, opens the database and migrates its tables. Returns the App, the first argument of most functions of the service.
 *
 * @example
 * const app = await createApp({ settings: { db: 'sqlite:data/verso.db' }, models: [{ file: 'task.ts', definition: Task }] })
 */
export async function createApp(options: AppOptions): Promise<App> {
  const settings: Settings = { ...DEFAULT_SETTINGS, ...options.settings }
  const log = options.log ?? pino({ level: 'silent' })
  const catalog = options.models instanceof Catalog ? options.models : Catalog.from(options.models)
  const schedules = options.schedules ?? []
  checkSchedules(schedules)
  const db = options.database ?? (await openConfiguredDatabase(settings, log, options.onBroken))
  const clockSync = options.clock ? undefined : await startClockSync(db, log)
  const clock: Clock = options.clock ?? clockSync?.clock ?? Date
  const prepared = applySchema(db, catalog).then(async (applied) => {
    options.onSchemaApplied?.(applied)
    const tables = new Tables(db.dialect, catalog, applied.formerFields)
    await syncMetaModels({ catalog, db, tables, clock, undeclaredReferrers: applied.undeclaredReferrers })
    // Recovery writes. For a read-only database it waits for the next start.
    if (!(await db.writability())) await db.blobs.recover()
    return { ...applied, tables }
  })
  const { tables, snapshots, undeclaredReferrers, notes } = await prepared.catch(async (error: unknown) => {
    await clockSync?.close()
    await db.close()
    throw error
  })
  for (const note of notes) log.warn(note)
  const authorizer = new Authorizer({ catalog, db, tables })
  const elapsed = clock.elapsed?.bind(clock) ?? performance.now.bind(performance)
  const sessionCache = new SessionCache(elapsed)
  const changeWaiters = new ChangeWaiters(db)
  const staging = new StagingArea({
    totalBytes: MAX_STAGED_ANSWERS * settings.responseLimitBytes,
    queueTimeoutMs: settings.statementTimeoutMs,
  })
  const outgoing = {
    ...DEFAULT_EGRESS_OPTIONS,
    ...options.outgoing,
    egressPolicy: new EgressPolicy(settings.webhookAllow),
  }
  const readiness = new ReadinessSources()
  if (clockSync) readiness.add(() => clockSync.report())
  const composed: Omit<App, 'close' | 'settleHooks' | 'stopBackgroundWork'> = {
    settings,
    catalog,
    db,
    tables,
    tableSizes: new TableSizes(db.reader, tables, elapsed),
    searchPlans: new SearchPlans(),
    snapshots,
    undeclaredReferrers,
    authorizer,
    sessionCache,
    changeWaiters,
    readiness,
    staging,
    outgoing,
    hooks: composeHooks(
      [...AUTH_HOOKS, ...WEBHOOK_HOOKS, ...createDefinitionHooks(catalog)],
      TRANSACTION_HOOKS,
    ),
    planWrite,
    clock,
    log,
  }
  const stopHousekeeping = startHousekeeping(composed)
  const hasUserCode = schedules.length > 0 || catalog.storedModels.some(({ hooks }) => hooks.length > 0)
  const removeGuard = hasUserCode ? guardProcess(log) : undefined
  let background: BackgroundWork | undefined
  let stopped: Promise<void> | undefined
  const stopBackgroundWork = async () => (stopped ??= background?.stop())
  const app: App = {
    ...composed,
    settleHooks: async () => background?.settleHooks(),
    stopBackgroundWork,
    close: async () => {
      await stopBackgroundWork()
      removeGuard?.()
      await changeWaiters.close()
      await stopHousekeeping()
      await clockSync?.close()
      await db.close()
    },
  }
  try {
    await registerCommitHooks(app)
    await ensureDefaultRoles(app)
    if (options.runsBackgroundWork) background = startBackgroundWork(app, schedules)
  } catch (error) {
    await app.close()
    throw error
  }
  return app
}

async function startClockSync(db: Database, log: Logger): Promise<ClockSync> {
  try {
    return await ClockSync.start(db, log)
  } catch (error) {
    await db.close()
    throw error
  }
}

interface BackgroundWork {
  settleHooks(): Promise<void>
  stop(): Promise<void>
}

function startBackgroundWork(app: App, schedules: readonly Schedule[]): BackgroundWork {
  const commitHooks = startCommitHooks(app)
  const stops = [() => commitHooks.stop(), startDeliveryWorkers(app), startSchedules(app, schedules)]
  return {
    settleHooks: () => commitHooks.settle(),
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()))
    },
  }
}

async function openConfiguredDatabase(
  settings: Settings,
  log: Logger,
  onBroken: AppOptions['onBroken'],
): Promise<Database> {
  return openDatabase(settings.db, {
    poolSize: settings.poolSize,
    statementTimeoutMs: settings.statementTimeoutMs,
    maxQueueDelayMs: settings.maxQueueDelayMs,
    diskReserveBytes: settings.diskReserveBytes,
    quickCheck: settings.quickCheck,
    onQuickCheck: ({ kind }) => {
      if (kind === 'passed') log.info('the database is sound after an unclean stop')
      else if (kind !== 'damaged') log.warn({ reason: kind }, UNCHECKED_ADVICE)
    },
    onConnectionLost: (error) => {
      log.warn(summarizeError(error), 'lost a database connection')
    },
    onModeNarrowed: (file) => {
      log.warn({ file }, 'other users of this machine could read this file; only its owner can read it now')
    },
    onWriteHealthChange: (unwritable, error) => {
      if (!unwritable) log.info('the database accepts writes again')
      else if (unwritable.kind !== 'failed')
        log.error(
          error ? summarizeError(unwrapLoggedCause(error)) : {},
          unwritable.reason === RESTART_REASON ? RESTART_REASON : UNWRITABLE_ADVICE[unwritable.kind],
        )
    },
    onBroken: (error) => {
      log.fatal({ err: error }, 'disk failure')
      onBroken?.(error)
    },
  })
}

const UNCHECKED_ADVICE =
  'the last process has not stopped cleanly, and the database was not checked: to check it, run "verso verify"'

/** Log messages for operators. */
const UNWRITABLE_ADVICE = {
  'no-connections':
    'PostgreSQL accepts no more connections: requests that need a new one are rejected with 503. Raise max_connections, or lower --pool-size of the nodes; no restart of the service is needed',
  silent:
    'PostgreSQL does not respond: all requests are rejected with 503 until it does; no restart of the service is needed',
  full: 'the disk is full: reads succeed, and on SQLite logins and deletes; other writes are rejected with 507. Make room on the disk of the database; no restart is needed',
  'read-only':
    'the database is read-only: reads succeed; logins and all other writes are rejected with 503. Make it writable; no restart is needed',
  damaged:
    'the database is damaged: writes, and reads of damaged data, are rejected with 503. Stop the service, run "verso verify", and restore a backup',
} as const
