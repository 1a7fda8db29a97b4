import type { Command } from 'commander'
import type { Model } from '../../model/definition/model.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from '../../service/auth/user-hooks.js'
import { listAllUsers, ensureDemoAccount, hasDemoPassword } from '../../service/auth/accounts.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { recordsFor } from '../../service/records/records.js'
import { MEMORY_URL } from '../../store/open.js'
import type { Page } from '../../wire.js'
import { loadModelsWithReport } from '../models/models.js'
import { NO_ROUTES } from '../models/route-files.js'
import { redactDatabaseUrl } from '../open.js'
import { resolvePackageFile } from '../package-files.js'
import { runServer } from './run.js'
import { formatStartText, type NextStep } from './start-text.js'
import { createSampleContacts, SAMPLE_MODEL } from './sample.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import type { SettingValues } from '../settings/settings.js'

const EXAMPLES = `
Examples:
  $ verso demo                                    sample contacts on http://localhost:8080, account admin / admin
  $ verso demo --port 0 --sample 100000           a free port, 100,000 contacts
  $ verso demo --models models                    your own models with the account of the demo`

export function addDemoCommand(program: Command): void {
  const command = program
    .command('demo')
    .description('serve a sample to try it out')
    .addHelpText('after', EXAMPLES)
  addSettingFlags(command, 'demo').action(async (flags: Flags) =>
    runDemo(readSettings('demo', flags, process.env)),
  )
}

async function runDemo(values: SettingValues): Promise<void> {
  const loaded = await loadModelsWithReport(values.models ?? resolvePackageFile('examples/contacts'))
  await runServer({
    values,
    isDemo: true,
    loaded: { ...loaded, routes: NO_ROUTES },
    prepare: async (app) => {
      await ensureDemoAccount(app)
      const model = findSampleModel(app)
      if (model) await createSampleContacts(app, await findDemoUser(app), model, values.sample)
      return { offersDemoAccount: true }
    },
    announce: async (app, url) => describeDemo(app, url),
  })
}

function describeData(db: string): string {
  return db === MEMORY_URL
    ? `${db}, deleted when you stop it`
    : `${redactDatabaseUrl(db)}, kept when you stop it`
}

function findSampleModel(app: App): Model | undefined {
  return app.catalog.models.find((model) => model.name === SAMPLE_MODEL)
}

/** Returns the account of the demo, or another user if that was removed. */
async function findDemoUser(app: App): Promise<UserIdentity | null> {
  const users = await listAllUsers(app)
  return users.find((user) => user.username === DEMO_USERNAME) ?? users[0] ?? null
}

async function describeDemo(app: App, url: string): Promise<string> {
  const model = findSampleModel(app) ?? app.catalog.models[0]
  const user = await findDemoUser(app)
  const page = model && user ? await recordsFor(app, user).find(model.name, { limit: 1 }) : undefined
  const hasKnownPassword = await hasDemoPassword(app)
  const password = hasKnownPassword ? DEMO_PASSWORD : '<password>'
  return formatStartText({
    facts: [
      ['Open', `${url} in a browser`],
      ['Account', hasKnownPassword ? `${DEMO_USERNAME} / ${DEMO_PASSWORD}` : 'with your own password'],
      ['Model', model && page ? `${model.name}, ${page.total} records` : 'none'],
      ['Data', describeData(app.settings.db)],
    ],
    steps: model && page ? buildCurlExamples(url, password, model, page) : [],
  })
}

function buildCurlExamples(
  url: string,
  password: string,
  model: Model,
  { data: [record] }: Page,
): NextStep[] {
  const modelUrl = `${url}/ws/rest/${model.name}`
  const credentials = JSON.stringify({ username: DEMO_USERNAME, password })
  const examples: NextStep[] = [
    { what: 'Log in from a shell', parts: [`curl -c cookies.txt -d '${credentials}'`, `'${url}/callback'`] },
    { what: 'List', parts: [`curl -b cookies.txt`, `'${modelUrl}?limit=5'`] },
  ]
  if (!record || model.name !== SAMPLE_MODEL) return examples
  const { id, version } = record
  const update = [
    `curl -b cookies.txt -H 'Content-Type: application/json'`,
    `-d '${JSON.stringify({ data: { id, version, phone: '+1 202 555 0123' } })}'`,
    `'${modelUrl}/${id}'`,
  ]
  examples.push({ what: `Update one, which has version ${version}`, parts: update })
  examples.push({ what: 'Send it again: a conflict (409), because the version has changed', parts: update })
  return examples
}
