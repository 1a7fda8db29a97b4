import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import type { ServerOptions } from '../../http/server.js'
import { ensureFirstAdmin, lacksAdministrator } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { loadReported } from '../models/models.js'
import { run } from './run.js'
import { addSettings, readSettings, type Flags, type SettingValues } from '../settings/settings.js'

const FIRST_ADMIN = 'admin'
const TOKEN_BYTES = 32

const EXAMPLES = `
Examples:
  $ verso init                                    writes a starter folder
  $ verso serve --models models
  $ VERSO_ADMIN_PASSWORD=… verso serve --models models --host 0.0.0.0 --port 80
  $ verso serve --models models --db postgres://verso@db.example.org/verso`

export function addServe(program: Command): void {
  const command = program.command('serve').description('serve your models').addHelpText('after', EXAMPLES)
  addSettings(command, 'serve').action(async (flags: Flags) =>
    serve(readSettings('serve', flags, process.env)),
  )
}

async function serve(values: SettingValues): Promise<void> {
  const loaded = await loadReported(values.models ?? '')
  await run({
    ...{ values, isDemo: false, loaded },
    prepare: async (app) => prepareAccount(app, values.adminPassword),
    announce: async (_, url, { setupToken }) => {
      if (setupToken === undefined) return ''
      const place = values.publicUrl === undefined ? url : `${values.publicUrl}${values.basePath}`
      return `There is no administrator yet. Make one here:\n  ${place}/setup?token=${setupToken}\n`
    },
  })
}

async function prepareAccount(app: App, password: string | undefined): Promise<ServerOptions> {
  if (password !== undefined && (await ensureFirstAdmin(app, FIRST_ADMIN, password))) {
    app.log.warn({ user: FIRST_ADMIN }, 'the first administrator was made')
  }
  return (await lacksAdministrator(app)) ? { setupToken: randomBytes(TOKEN_BYTES).toString('base64url') } : {}
}
