import type { Command } from 'commander'
import type { Model } from '../../model/definition/model.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from '../../service/auth/user-hooks.js'
import { listAllUsers, ensureDemoAccount, hasDemoPassword } from '../../service/auth/accounts.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { recordsFor } from '../../service/records/records.js'
import type { Page } from '../../wire.js'
import { loadModelsWithReport } from '../models/models.js'
import { redactDatabaseUrl } from '../open.js'
import { resolvePackageFile } from '../package-files.js'
import { runServer } from './run.js'
import { createSampleContacts, SAMPLE_MODEL } from './sample.js'
import { addSettingFlags, readSettings, type Flags } from '../settings/read-settings.js'
import type { SettingValues } from '../settings/settings.js'

const MAX_LINE_CHARS = 100

const EXAMPLES = `
Examples:
  $ verso demo                                    contacts on http://localhost:8080, account admin / admin
  $ verso demo --port 0 --sample 100000           any free port, many contacts
  $ verso demo --models models                    the same with your own models`

export function addDemoCommand(program: Command): void {
  const command = program
    .command('demo')
    .description('serve a sample, to look around')
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
    loaded,
    prepare: async (app) => {
      await ensureDemoAccount(app)
      const model = findSampleModel(app)
      if (model) await createSampleContacts(app, await findDemoUser(app), model, values.sample)
      return {}
    },
    announce: async (app, url) => describeDemo(app, url),
  })
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
  const facts = [
    ['Address', url],
    ['Account', hasKnownPassword ? `${DEMO_USERNAME} / ${DEMO_PASSWORD}` : 'as you changed it'],
    ['Model', model && page ? `${model.name}, ${page.total} records` : 'none'],
    ['Data', redactDatabaseUrl(app.settings.db)],
  ]
  const password = hasKnownPassword ? DEMO_PASSWORD : '<password>'
  const examples = model && page ? buildCurlExamples(url, password, model, page) : []
  return [
    '',
    ...facts.map(([name = '', fact = '']) => `  ${name.padEnd(9)}${fact}`),
    ...examples.flatMap(({ what, parts }) => ['', `  ${what}:`, wrapCommand(parts)]),
    '',
    '  Stop it with Ctrl-C; the data stays.',
    '',
  ].join('\n')
}

interface CurlExample {
  readonly what: string
  /** Parts of one command; a line may break between them. */
  readonly parts: readonly string[]
}

/** Puts the command on one line if it fits, else continues it with backslashes. */
function wrapCommand(parts: readonly string[]): string {
  const line = `    ${parts.join(' ')}`
  return line.length <= MAX_LINE_CHARS ? line : `    ${parts.join(' \\\n      ')}`
}

function buildCurlExamples(
  url: string,
  password: string,
  model: Model,
  { data: [record] }: Page,
): CurlExample[] {
  const modelUrl = `${url}/ws/rest/${model.name}`
  const credentials = JSON.stringify({ username: DEMO_USERNAME, password })
  const examples: CurlExample[] = [
    { what: 'Log in', parts: [`curl -c cookies.txt -d '${credentials}'`, `'${url}/callback'`] },
    { what: 'List', parts: [`curl -b cookies.txt`, `'${modelUrl}?limit=5'`] },
  ]
  if (!record || model.name !== SAMPLE_MODEL) return examples
  const { id, version } = record
  const update = [
    `curl -b cookies.txt -H 'Content-Type: application/json'`,
    `-d '${JSON.stringify({ data: { id, version, phone: '+1 202 555 0123' } })}'`,
    `'${modelUrl}/${id}'`,
  ]
  examples.push({ what: `Change one, which is at version ${version}`, parts: update })
  examples.push({ what: 'The same again: a conflict, because the version has moved on', parts: update })
  return examples
}
