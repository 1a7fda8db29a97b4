// What demo and serve share: from settings to a listening server, and its end.
import { once } from 'node:events'
import { createServer as createProbe } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { ConfigError } from '../../errors.js'
import { isLoopback, LOOPBACK_4 } from '../../http/connection/loopback.js'
import { createServer, type Server, type ServerOptions } from '../../http/server.js'
import { summarizeReport } from '../../formats/domain-xml/report.js'
import { hasDemoPassword } from '../../service/auth/accounts.js'
import type { App } from '../../service/context/app.js'
import { openLog } from './logger.js'
import type { Loaded } from '../models/models.js'
import { openApp } from '../open.js'
import { packageVersion } from '../package-files.js'
import { warnOfPassedOver } from '../models/skipped-files.js'
import { httpSettings, serviceSettings, type SettingValues } from '../settings/settings.js'
import { endOnCrash, endOnSignals } from './shutdown.js'

const BROKEN_MS = 500
/** How much the heap grows beyond what is alive before all of it is looked through. V8 would take three times that, and hold it. */
const HEAP_GROWTH = '--heap-growing-percent=100'

export interface Service {
  readonly values: SettingValues
  readonly isDemo: boolean
  readonly loaded: Loaded
  /** What must be there before anybody is let in. */
  readonly prepare: (app: App) => Promise<ServerOptions>
  /** For people, printed once it listens. */
  readonly announce: (app: App, url: string, options: ServerOptions) => Promise<string>
}

export async function run(service: Service): Promise<void> {
  setFlagsFromString(HEAP_GROWTH)
  const { values, isDemo, loaded } = service
  const log = openLog(values.logLevel)
  const warnings = [...summarizeReport(loaded.report), ...warnOfPassedOver(loaded.passedOver)]
  for (const line of warnings) log.warn(line)
  if (warnings.length > 0) log.warn('all of this in full: verso models report')
  endOnCrash(log)
  const ending = endOnSignals(log)
  // Before the tables follow the models: whoever serves there already would find them changed.
  await requireFreePort(values)
  const app = await openApp({
    settings: serviceSettings(values, isDemo),
    models: loaded.sources,
    log,
    deliversWebhooks: true,
    outgoing: { userAgent: `verso/${packageVersion()}` },
    // A little later, so that the answers that say so still leave.
    onBroken: () => setTimeout(() => process.exit(1), BROKEN_MS),
  })
  ending.first(() => app.close())
  let server: Server | undefined
  try {
    const options = await service.prepare(app)
    await refuseOpenDemo(app, values)
    server = await createServer(app, httpSettings(values), options)
    const [url = ''] = await listen(server, values)
    const listening = server
    ending.first(() => listening.close())
    const words = await service.announce(app, url, options)
    process.stdout.write(`listening on ${url}\n${words}`)
    log.info({ url }, 'listening')
  } catch (error) {
    await server?.close()
    await app.close()
    throw error
  }
}

/** Everybody knows the password of the demo: with it, nobody else's computer may reach the service. */
async function refuseOpenDemo(app: App, { host, db, unsafeOpenDemo }: SettingValues): Promise<void> {
  if (isLoopback(host) || unsafeOpenDemo || !(await hasDemoPassword(app))) return
  throw new ConfigError(`The account admin still has the password of the demo, so ${host} is refused`, [
    `give it another password: verso user passwd admin --db ${db.startsWith('sqlite:') ? db : '…'}`,
    'or listen on this computer only: --host localhost',
    ...(app.settings.isDemo ? ['or let everybody in who can reach it: --unsafe-open-demo'] : []),
  ])
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there; stop it, or choose another port with --port',
  EACCES: 'that port is not allowed to you; choose one above 1023 with --port',
  EADDRNOTAVAIL: 'that is no address of this computer; choose another with --host',
  ENOTFOUND: 'there is no such host; choose another with --host',
}

async function listen(server: Server, values: SettingValues): Promise<string[]> {
  try {
    return await server.listen()
  } catch (error) {
    throw listenFault(error, values)
  }
}

async function requireFreePort(values: SettingValues): Promise<void> {
  const { host, port } = values
  if (port === 0) return
  const probe = createProbe()
  probe.listen({ host: host === 'localhost' ? LOOPBACK_4 : host, port })
  try {
    await once(probe, 'listening')
  } catch (error) {
    throw listenFault(error, values)
  }
  probe.close()
  await once(probe, 'close')
}

function listenFault(error: unknown, { host, port }: SettingValues): unknown {
  const fault = error instanceof Error && 'code' in error ? LISTEN_FAULTS[String(error.code)] : undefined
  if (fault === undefined) return error
  return new ConfigError('The service cannot listen', [`${host}, port ${port}: ${fault}`])
}
