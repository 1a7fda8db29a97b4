// Serves the models of a folder while they are edited.
import type { Command } from 'commander'
import { isLoopback } from '../../http/connection/loopback.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from '../../service/auth/user-hooks.js'
import { ensureDemoAccount, hasDemoPassword } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { MEMORY_URL } from '../../store/open.js'
import type { SchemaStep } from '../../store/schema/plan.js'
import { toDisplayPath } from '../models/model-files.js'
import { loadModelsWithReport } from '../models/models.js'
import { loadRoutes } from '../models/route-files.js'
import { ModelReloader, printMigration } from './model-reloader.js'
import { runServer } from './run.js'
import { describeService, prepareAdministrator } from './serve.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import type { SettingValues } from '../settings/settings.js'
import { ModelWatcher } from './watch-models.js'

const EXAMPLES = `
Serves like "verso serve", and reloads the models and routes when their files change. It changes the tables, and never deletes data.
On this computer it creates the account ${DEMO_USERNAME} / ${DEMO_PASSWORD} if there is no administrator.

Examples:
  $ verso init                                    create a starter folder of models
  $ verso dev                                     serve the folder models
  $ verso dev --models src/models --port 0
  $ verso dev --models models --routes routes     serve your own routes, too`

export function addDevCommand(program: Command): void {
  const command = program
    .command('dev')
    .description('serve your models, and reload them when you edit them')
    .addHelpText('after', EXAMPLES)
  addSettingFlags(command, 'dev').action(async (flags: Flags) =>
    runDev(readSettings('dev', flags, process.env)),
  )
}

async function runDev(values: SettingValues): Promise<void> {
  const { models = '', routes } = values
  const watcher = new ModelWatcher(routes === undefined ? [models] : [models, routes])
  const startMs = Date.now()
  const catalog = await loadModelsWithReport(models)
  const loaded = { ...catalog, routes: await loadRoutes(routes) }
  watcher.addImports([...loaded.scripts, ...loaded.routes.scripts], startMs)
  const isDemo = isForThisComputer(values)
  const server = await runServer({
    values: { ...values, db: await keepMemory(values.db) },
    isDemo,
    loaded,
    onMigrated: (steps) => {
      const shown = withoutNewSystemTables(steps, loaded.catalog)
      if (shown.length > 0) printMigration(shown, values.db)
    },
    prepare: async (app) => {
      if (isDemo) await ensureDemoAccount(app)
      return prepareAdministrator(app, values.adminPassword)
    },
    announce: async (app, url, { setupToken }) =>
      describeService(app, {
        baseUrl: values.publicUrl === undefined ? url : `${values.publicUrl}${values.basePath}`,
        db: values.db,
        setupToken,
        account: await findAccount(app),
        watched: [models, ...(routes === undefined ? [] : [routes])].map(toDisplayPath).join(', '),
      }),
  })
  server.onShutdown(() => watcher.close())
  const reloader = new ModelReloader(server, watcher, {
    modelsPath: models,
    routesPath: routes,
    db: values.db,
  })
  watcher.start({
    onChange: (files) => reloader.reload(files),
    onQuiet: () => reloader.retryRefused(),
  })
}

/** New tables for users, roles and files are no news. */
function withoutNewSystemTables(steps: readonly SchemaStep[], { models }: Catalog): SchemaStep[] {
  const created = new Set(steps.filter(({ kind }) => kind === 'create-table').map(({ model }) => model))
  const own = new Set(models.map(({ name }) => name))
  return steps.filter(({ model }) => own.has(model) || !created.has(model))
}

/** True if nobody else can reach the service and its database, so that an account with a public password harms nobody. */
export function isForThisComputer({
  host,
  publicUrl,
  trustProxy,
  adminPassword,
  db,
}: SettingValues): boolean {
  const isPrivate = isLoopback(host) && publicUrl === undefined && trustProxy === undefined
  return isPrivate && isLocalDatabase(db) && adminPassword === undefined
}

function isLocalDatabase(db: string): boolean {
  if (db.startsWith('sqlite:')) return true
  const { hostname, searchParams } = new URL(db)
  const named = searchParams.get('host') ?? decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1')
  const host = named || (process.env['PGHOST'] ?? 'localhost')
  // The path of a socket.
  return host.startsWith('/') || isLoopback(host)
}

/** A database in memory ends when it closes, and every reload opens the database again. */
async function keepMemory(db: string): Promise<string> {
  if (db !== MEMORY_URL) return db
  const { createMemoryFile } = await import('../../store/sqlite/memory.js')
  return `sqlite:${createMemoryFile().file}`
}

async function findAccount(app: App): Promise<{ username: string; password: string } | undefined> {
  if (!(await hasDemoPassword(app))) return undefined
  return { username: DEMO_USERNAME, password: DEMO_PASSWORD }
}
