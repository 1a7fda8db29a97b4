import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import type { ServerOptions } from '../../http/server.js'
import { ensureFirstAdmin, lacksAdministrator } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { loadModelsWithReport } from '../models/models.js'
import { loadRoutes } from '../models/route-files.js'
import { redactDatabaseUrl } from '../open.js'
import { runServer } from './run.js'
import { formatStartText, summarizeNames, type NextStep } from './start-text.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import type { SettingValues } from '../settings/settings.js'

const FIRST_ADMIN_USERNAME = 'admin'
const SETUP_TOKEN_BYTES = 32

const EXAMPLES = `
Examples:
  $ verso init                                    create a starter folder of models
  $ verso serve --models models
  $ verso serve --models models --routes routes
  $ VERSO_ADMIN_PASSWORD=… verso serve --models models --host 0.0.0.0 --port 80
  $ verso serve --models models --db postgres://verso@db.example.org/verso`

export function addServeCommand(program: Command): void {
  const command = program.command('serve').description('serve your models').addHelpText('after', EXAMPLES)
  addSettingFlags(command, 'serve').action(async (flags: Flags) =>
    runServe(readSettings('serve', flags, process.env)),
  )
}

async function runServe(values: SettingValues): Promise<void> {
  const models = await loadModelsWithReport(values.models ?? '')
  await runServer({
    values,
    isDemo: false,
    loaded: { ...models, routes: await loadRoutes(values.routes) },
    prepare: async (app) => prepareAdministrator(app, values.adminPassword),
    announce: async (app, url, { setupToken }) => {
      const baseUrl = values.publicUrl === undefined ? url : `${values.publicUrl}${values.basePath}`
      return Promise.resolve(describeService(app, { baseUrl, db: values.db, setupToken }))
    },
  })
}

export interface ServiceFacts {
  readonly baseUrl: string
  /** The database as the user named it. */
  readonly db: string
  readonly setupToken: string | undefined
  /** An account whose password the user may see. */
  readonly account?: { readonly username: string; readonly password: string } | undefined
  /** The file or folder that is reloaded when it changes. */
  readonly watched?: string
}

/** Returns the text for the user of a service that has started. */
export function describeService(
  app: App,
  { baseUrl, db, setupToken, account, watched }: ServiceFacts,
): string {
  const setup =
    setupToken === undefined
      ? []
      : ['There is no administrator yet. Create one here:', `  ${baseUrl}/setup?token=${setupToken}`]
  const [model] = app.catalog.models
  const credentials = account ?? { username: '<name>', password: '<password>' }
  const login = `curl -c cookies.txt -d '${JSON.stringify(credentials)}'`
  const steps: NextStep[] =
    model === undefined
      ? []
      : [
          { what: 'Log in from a shell', parts: [login, `'${baseUrl}/callback'`] },
          { what: 'List', parts: ['curl -b cookies.txt', `'${baseUrl}/ws/rest/${model.name}?limit=5'`] },
        ]
  return formatStartText({
    facts: [
      ['Open', `${baseUrl} in a browser`],
      ...(account ? [['Account', `${account.username} / ${account.password}`] as const] : []),
      ['Models', summarizeNames(app.catalog.models.map(({ name }) => name))],
      ['Data', redactDatabaseUrl(db)],
      ...(watched === undefined ? [] : [['Watched', `${watched}: edits are served at once`] as const]),
    ],
    paragraphs: setup,
    steps,
  })
}

export async function prepareAdministrator(app: App, password: string | undefined): Promise<ServerOptions> {
  if (password !== undefined && (await ensureFirstAdmin(app, FIRST_ADMIN_USERNAME, password))) {
    app.log.warn({ user: FIRST_ADMIN_USERNAME }, 'created the first administrator')
  }
  return (await lacksAdministrator(app))
    ? { setupToken: randomBytes(SETUP_TOKEN_BYTES).toString('base64url') }
    : {}
}
