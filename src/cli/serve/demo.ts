import type { Command } from 'commander'
import type { Model } from '../../model/definition/model.js'
import { DEMO_PASSWORD, DEMO_USERNAME } from '../../service/auth/account-rules.js'
import { listAllUsers, ensureDemoAccount, hasDemoPassword } from '../../service/auth/accounts.js'
import type { UserIdentity } from '../../service/context/identity.js'
import type { App } from '../../service/context/app.js'
import { recordsFor } from '../../service/records/records.js'
import type { Page } from '../../wire.js'
import { loadReported } from '../models/models.js'
import { shownDatabase } from '../open.js'
import { packageFile } from '../package-files.js'
import { run } from './run.js'
import { makeSample, SAMPLE_MODEL } from './sample.js'
import { addSettings, readSettings, type Flags, type SettingValues } from '../settings/settings.js'

const WIDTH = 100

const EXAMPLES = `
Examples:
  $ verso demo                                    contacts on http://localhost:8080, account admin / admin
  $ verso demo --port 0 --sample 100000           any free port, many contacts
  $ verso demo --models models                    the same with your own models`

export function addDemo(program: Command): void {
  const command = program
    .command('demo')
    .description('serve a sample, to look around')
    .addHelpText('after', EXAMPLES)
  addSettings(command, 'demo').action(async (flags: Flags) => demo(readSettings('demo', flags, process.env)))
}

async function demo(values: SettingValues): Promise<void> {
  const loaded = await loadReported(values.models ?? packageFile('examples/contacts'))
  await run({
    ...{ values, isDemo: true, loaded },
    prepare: async (app) => {
      await ensureDemoAccount(app)
      const model = sampleModel(app)
      if (model) await makeSample(app, await demoActor(app), model, values.sample)
      return {}
    },
    announce: async (app, url) => announce(app, url),
  })
}

function sampleModel(app: App): Model | undefined {
  return app.catalog.models.find((model) => model.name === SAMPLE_MODEL)
}

/** The demo's account, or whichever took its place. */
async function demoActor(app: App): Promise<UserIdentity | null> {
  const users = await listAllUsers(app)
  return users.find((user) => user.username === DEMO_USERNAME) ?? users[0] ?? null
}

async function announce(app: App, url: string): Promise<string> {
  const model = sampleModel(app) ?? app.catalog.models[0]
  const actor = await demoActor(app)
  const page = model && actor ? await recordsFor(app, actor).find(model.name, { limit: 1 }) : undefined
  const hasKnownPassword = await hasDemoPassword(app)
  const facts = [
    ['Address', url],
    ['Account', hasKnownPassword ? `${DEMO_USERNAME} / ${DEMO_PASSWORD}` : 'as you changed it'],
    ['Model', model && page ? `${model.name}, ${page.total} records` : 'none'],
    ['Data', shownDatabase(app.settings.db)],
  ]
  const password = hasKnownPassword ? DEMO_PASSWORD : '<password>'
  const tries = model && page ? curlLines(url, password, model, page) : []
  return [
    '',
    ...facts.map(([name = '', fact = '']) => `  ${name.padEnd(9)}${fact}`),
    ...tries.flatMap(({ what, parts }) => ['', `  ${what}:`, layOut(parts)]),
    '',
    '  Stop it with Ctrl-C; the data stays.',
    '',
  ].join('\n')
}

interface Try {
  readonly what: string
  /** One command, and where it may be broken. */
  readonly parts: readonly string[]
}

/** On one line if it fits, else continued as a shell reads it. */
function layOut(parts: readonly string[]): string {
  const line = `    ${parts.join(' ')}`
  return line.length <= WIDTH ? line : `    ${parts.join(' \\\n      ')}`
}

function curlLines(url: string, password: string, model: Model, { data: [record] }: Page): Try[] {
  const place = `${url}/ws/rest/${model.name}`
  const credentials = JSON.stringify({ username: DEMO_USERNAME, password })
  const tries: Try[] = [
    { what: 'Log in', parts: [`curl -c cookies.txt -d '${credentials}'`, `'${url}/callback'`] },
    { what: 'List', parts: [`curl -b cookies.txt`, `'${place}?limit=5'`] },
  ]
  if (!record || model.name !== SAMPLE_MODEL) return tries
  const { id, version } = record
  const update = [
    `curl -b cookies.txt -H 'Content-Type: application/json'`,
    `-d '${JSON.stringify({ data: { id, version, phone: '+1 202 555 0123' } })}'`,
    `'${place}/${id}'`,
  ]
  tries.push({ what: `Change one, which is at version ${version}`, parts: update })
  tries.push({ what: 'The same again: a conflict, because the version has moved on', parts: update })
  return tries
}
