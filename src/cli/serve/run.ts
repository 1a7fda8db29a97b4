// Starts and stops a server, for the commands demo, serve and dev.
import { once } from 'node:events'
import { createServer as createProbe } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { ConfigError } from '../../errors.js'
import { isLoopback, LOOPBACK_IPV4 } from '../../http/connection/loopback.js'
import type { RoutePlugin } from '../../http/ext/route-plugin.js'
import type { Metrics } from '../../http/metrics/metrics.js'
import { createServer, type Server, type ServerOptions } from '../../http/server.js'
import { summarizeReport } from '../../formats/domain-xml/report.js'
import { hasDemoPassword } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import type { SchemaStep } from '../../store/schema/plan.js'
import { createLogger } from './logger.js'
import type { LoadedCatalog } from '../models/models.js'
import type { LoadedRoutes } from '../models/route-files.js'
import { openApp } from '../open.js'
import { readPackageVersion } from '../package-files.js'
import { spellCommands } from '../terminal/invocation.js'
import { summarizeSkipWarnings } from '../models/skipped-files.js'
import { toHttpSettings, toServiceSettings } from '../settings/read-settings.js'
import type { SettingValues } from '../settings/settings.js'
import { ScheduledBackups } from './scheduled-backups.js'
import { exitOnCrash, shutDownOnSignals, type ShutdownSteps } from './shutdown.js'

const BROKEN_EXIT_DELAY_MS = 500
/**
 * Heap growth above the live objects before a full garbage collection. V8's default grows by about three times as much
 * and keeps the memory.
 */
const HEAP_GROWTH_FLAG = '--heap-growing-percent=100'

/** The code of the application: models with their hooks, routes and schedules. */
export interface LoadedCode extends LoadedCatalog {
  readonly routes: LoadedRoutes
}

export interface ServerStartup {
  readonly values: SettingValues
  readonly isDemo: boolean
  readonly loaded: LoadedCode
  /** Creates accounts and records before the server listens. */
  readonly prepare: (app: App) => Promise<ServerOptions>
  /** Returns a text for the user, printed when the server listens. */
  readonly announce: (app: App, url: string, options: ServerOptions) => Promise<string>
  /** Gets the steps of the migration at start, before the server listens. */
  readonly onMigrated?: (steps: readonly SchemaStep[]) => void
}

export interface RunningServer {
  /** The App of the models that are served now. */
  readonly app: App
  /**
   * Serves other models and routes on the same address. Resolves with the steps of the migration. If they cannot be served, it throws, and the
   * current ones are served further.
   */
  serveModels(loaded: LoadedCode): Promise<readonly SchemaStep[]>
  /** Adds a step that runs before the server stops. */
  onShutdown(step: () => Promise<void>): void
}

export async function runServer(startup: ServerStartup): Promise<RunningServer> {
  setFlagsFromString(HEAP_GROWTH_FLAG)
  const { values } = startup
  const log = createLogger(values.logLevel, values.logFormat)
  exitOnCrash(log)
  const shutdown = shutDownOnSignals(log, values.drain)
  // Check the port before the migration: a server that already listens there must not see its tables change.
  await requireFreePort(values)
  const measuring = await openMetricsPort(values, shutdown, log)
  const backups = createScheduledBackups(values)
  const open = async (loaded: LoadedCode) => openWithModels(startup, loaded, { log, backups })
  const first = await open(startup.loaded)
  startup.onMigrated?.(first.steps)
  let { app } = first
  const formerApps = new FormerApps(log)
  shutdown.prepend(async () => {
    await formerApps.waitUntilClosed()
    await app.close()
  })
  let server: Server | undefined
  try {
    const options = await startup.prepare(app)
    await refusePublicDemo(app, values)
    const { plugins: routes } = startup.loaded.routes
    const { metrics } = measuring ?? {}
    server = await createServer(app, toHttpSettings(values), { ...options, routes, metrics })
    const [url = ''] = await startListening(server, values)
    const listening = server
    shutdown.prepend(() => listening.close())
    const text = await startup.announce(app, url, options)
    const metricsLine = measuring ? `metrics on ${measuring.url}\n` : ''
    process.stdout.write(`listening on ${url}\n${metricsLine}${text}`)
    log.info({ url }, 'listening')
    return {
      get app() {
        return app
      },
      serveModels: async (loaded) => {
        const former = app
        const { opened, answered } = await listening.replaceApp(() => open(loaded))
        app = opened.app
        formerApps.closeAfter(answered, former)
        return opened.steps
      },
      onShutdown: (step) => {
        shutdown.prepend(step)
      },
    }
  } catch (error) {
    await server?.close()
    await app.close()
    throw error
  }
}

interface MeasuredProcess {
  readonly metrics: Metrics
  readonly url: string
}

/** Opens the port before the models, so that a mistyped one changes no table. It answers until the last step of the shutdown. */
async function openMetricsPort(
  { metricsHost: host, metricsPort: port, port: servicePort }: SettingValues,
  shutdown: ShutdownSteps,
  log: Logger,
): Promise<MeasuredProcess | undefined> {
  if (port === undefined) return undefined
  if (port !== 0 && port === servicePort)
    throw new ConfigError('The service cannot start', [
      `--metrics-port and --port are both ${port}: choose another port for the metrics`,
    ])
  // Only a process that measures loads these modules.
  const { Metrics } = await import('../../http/metrics/metrics.js')
  const { serveMetrics } = await import('../../http/metrics/metrics-server.js')
  const metrics = new Metrics({ version: readPackageVersion() })
  try {
    const server = await serveMetrics(metrics, { host, port })
    const { url } = server
    shutdown.prepend(() => server.close())
    log.info({ url }, 'serving metrics')
    return { metrics, url }
  } catch (error) {
    throw translateListenError(error, { host, port }, ['--metrics-host', '--metrics-port'])
  }
}

interface OpenedModels {
  readonly app: App
  readonly routes: readonly RoutePlugin[]
  readonly steps: readonly SchemaStep[]
}

async function openWithModels(
  { values, isDemo }: ServerStartup,
  loaded: LoadedCode,
  { log, backups }: { readonly log: Logger; readonly backups: ScheduledBackups | undefined },
): Promise<OpenedModels> {
  const warnings = [...summarizeReport(loaded.report), ...summarizeSkipWarnings(loaded.skipped)]
  for (const line of warnings) log.warn(line)
  if (warnings.length > 0) log.warn(`for the full report, run: ${spellCommands('verso models report')}`)
  let steps: readonly SchemaStep[] = []
  const app = await openApp({
    settings: toServiceSettings(values, isDemo),
    models: loaded.catalog,
    schedules: [...loaded.routes.schedules, ...(backups ? [backups.schedule] : [])],
    log,
    runsBackgroundWork: true,
    outgoing: { userAgent: `verso/${readPackageVersion()}` },
    onSchemaApplied: (plan) => {
      steps = plan.steps
    },
    // Exit after a short delay, so that responses that report the failure can still be sent.
    onBroken: () => setTimeout(() => process.exit(1), BROKEN_EXIT_DELAY_MS),
  })
  backups?.attach(app)
  return { app, routes: loaded.routes.plugins, steps }
}

function createScheduledBackups(values: SettingValues): ScheduledBackups | undefined {
  const { backupEvery: everyMs, backupKeep: keep, backupFolder: folder, db, models } = values
  if (everyMs === undefined) return undefined
  if (db === 'sqlite::memory:')
    throw new ConfigError('The service cannot start', [
      '--backup-every needs a database that other processes can read: name a file with --db, or omit it',
    ])
  return new ScheduledBackups({ everyMs, keep, folder, db, models })
}

/** Closes Apps that are no longer served, after their last request is answered. */
class FormerApps {
  readonly #closing = new Set<Promise<void>>()

  constructor(private readonly log: Logger) {}

  /** The last requests may take long. Background work stops at once, so that the new App continues it. */
  closeAfter(answered: Promise<void>, app: App): void {
    const closed = Promise.all([answered, app.stopBackgroundWork()])
      .then(() => app.close())
      .catch((error: unknown) => {
        this.log.error({ err: error }, 'the former models could not be closed')
      })
      .finally(() => this.#closing.delete(closed))
    this.#closing.add(closed)
  }

  async waitUntilClosed(): Promise<void> {
    await Promise.all(this.#closing)
  }
}

/** Refuses to listen beyond this computer while an account has the public password of the demo. */
async function refusePublicDemo(app: App, { host, db, unsafeOpenDemo }: SettingValues): Promise<void> {
  if (isLoopback(host) || unsafeOpenDemo || !(await hasDemoPassword(app))) return
  throw new ConfigError(
    `The account admin still has the password of the demo, so the service does not listen on ${host}`,
    [
      `set another password: verso user passwd admin --db ${db.startsWith('sqlite:') ? db : '…'}`,
      'or listen on this computer only: --host localhost',
      ...(app.settings.isDemo
        ? ['or accept that everybody who reaches it can log in: --unsafe-open-demo']
        : []),
    ],
  )
}

type ListenFlags = readonly [host: string, port: string]
const SERVICE_FLAGS: ListenFlags = ['--host', '--port']
const LISTEN_ERROR_TEXTS: Readonly<Record<string, (flags: ListenFlags) => string>> = {
  EADDRINUSE: ([, port]) => `another program uses this port; stop it, or choose another port with ${port}`,
  EACCES: ([, port]) => `this user may not open the port; choose one above 1023 with ${port}`,
  EADDRNOTAVAIL: ([host]) => `this computer does not have that address; choose another with ${host}`,
  ENOTFOUND: ([host]) => `unknown host; choose another with ${host}`,
}

async function startListening(server: Server, values: SettingValues): Promise<string[]> {
  try {
    return await server.listen()
  } catch (error) {
    throw translateListenError(error, values)
  }
}

async function requireFreePort(values: SettingValues): Promise<void> {
  const { host, port } = values
  if (port === 0) return
  const probe = createProbe()
  probe.listen({ host: host === 'localhost' ? LOOPBACK_IPV4 : host, port })
  try {
    await once(probe, 'listening')
  } catch (error) {
    throw translateListenError(error, values)
  }
  probe.close()
  await once(probe, 'close')
}

function translateListenError(
  error: unknown,
  { host, port }: Pick<SettingValues, 'host' | 'port'>,
  flags = SERVICE_FLAGS,
): unknown {
  const describe =
    error instanceof Error && 'code' in error ? LISTEN_ERROR_TEXTS[String(error.code)] : undefined
  if (!describe) return error
  return new ConfigError('The service cannot start', [`${host}, port ${port}: ${describe(flags)}`])
}
