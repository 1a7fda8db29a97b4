// `verso prove`: points many clients at a service, and says whether it loses edits.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { hasInternalTables } from '../../store/schema/internal-tables.js'
import { shownDatabase, withDatabase } from '../open.js'
import { Progress } from '../terminal/progress.js'
import { chooseAdapter } from './adapter-choice.js'
import type { Adapter, AdapterOptions } from './adapter.js'
import type { Place } from './connection.js'
import { addFlags, readFlags, type ProveFlags, type Wanted } from './flags.js'
import { Nodes } from './nodes.js'
import { prove, type Plan, type Result } from './proof.js'
import { printScore, scoreOf } from './scoreboard.js'
import { OWN_MODEL } from './verso-adapter.js'
import { readSettings } from '../settings/settings.js'

const VIOLATED = 1
const RUN_BYTES = 6
const SIGNALS = { SIGINT: 130, SIGTERM: 143 } as const

const EXAMPLES = `
Exit code 0: nothing was lost. 1: something was, or the run could not be made. 2: the command line has a fault.

Examples:
  $ verso prove                                                  a service of its own, on SQLite
  $ verso prove --kills                                          which is killed now and then
  $ verso prove --db postgres://localhost/empty --nodes 3        three nodes on PostgreSQL
  $ verso prove --adapter last-write-wins                        a store that loses edits, to see it caught
  $ verso prove --url http://localhost:8080 --user ada --model crm.Note --field extra`

/** What is tried, and how it ends. */
interface Service {
  readonly adapter: Adapter
  readonly places: readonly Place[]
  readonly nodes?: Nodes
  readonly name: string
  /** Whether all of it goes with the end of the run. */
  readonly isPassing: boolean
  stop(): Promise<void>
}

export function addProve(program: Command): void {
  const command = program
    .command('prove')
    .description('see whether a service loses edits: many clients, dropped connections, kills')
    .addHelpText('after', EXAMPLES)
  addFlags(command).action(async (flags: ProveFlags) => {
    const { provePassword: password, proveKey: key } = readSettings('prove', {}, process.env)
    const [wanted, faults] = readFlags(flags)
    if (faults.length > 0) command.error(faults.map((fault) => `error: ${fault}`).join('\n'))
    for (const [signal, code] of Object.entries(SIGNALS)) process.once(signal, () => process.exit(code))
    const secrets = { password: flags.password ?? password, key: flags.key ?? (flags.user ? undefined : key) }
    process.exitCode = await run(flags, wanted, secrets)
  })
}

async function run(
  flags: ProveFlags,
  wanted: Wanted,
  secrets: Pick<AdapterOptions, 'password' | 'key'>,
): Promise<number> {
  if (flags.journal !== undefined) beginJournal(flags.journal)
  const name = `prove-${randomBytes(RUN_BYTES).toString('hex')}`
  const service = await startService(flags, wanted, { ...secrets, run: name })
  const plan: Plan = { ...wanted, run: name, cleansUp: !service.isPassing }
  const progress = new Progress()
  try {
    let [shownSeconds, shownUpdates] = [0, 0]
    const result = await prove(service.adapter, service.places, service.nodes, plan, {
      onOpen: () => {
        process.stderr.write(`${service.name}: ${plan.clients} clients for ${plan.seconds} s …\n`)
        progress.begin('proving', plan.seconds)
      },
      onTick: (seconds, updates) => {
        progress.advance(seconds - shownSeconds, updates - shownUpdates)
        ;[shownSeconds, shownUpdates] = [seconds, updates]
      },
    })
    progress.end()
    return report(flags, service, plan, result)
  } finally {
    await service.stop()
  }
}

/** What cannot be written is not to be found out at the end of a long run. */
function beginJournal(file: string): void {
  try {
    writeFileSync(file, '')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError('Nothing was proved', [`--journal cannot be written: ${why}`])
  }
}

function report(flags: ProveFlags, { name, places, adapter }: Service, plan: Plan, result: Result): number {
  const score = scoreOf(name, places.length, adapter.total !== undefined, plan, result)
  process.stdout.write(flags.json ? `${JSON.stringify(score)}\n` : printScore(score, plan.atLeast))
  if (flags.journal !== undefined)
    writeFileSync(
      flags.journal,
      result.journal.operations.map((operation) => `${JSON.stringify(operation)}\n`).join(''),
    )
  return score.violations.length > 0 || !score.isEnough ? VIOLATED : 0
}

async function startService(flags: ProveFlags, wanted: Wanted, options: AdapterOptions): Promise<Service> {
  if (wanted.urls === undefined && flags.adapter === 'verso') return startNodes(wanted, options)
  const { user, model, field, mark } = flags
  const adapter = await chooseAdapter(flags.adapter, { ...options, user, model, field, mark })
  const urls = wanted.urls ?? (await adapter.start?.())
  if (!urls) throw new ConfigError('Nothing was proved', ['--url is missing: where is the service?'])
  return {
    adapter,
    places: urls.map((url) => ({ url })),
    name: wanted.urls ? `${adapter.name} at ${urls.join(', ')}` : `${adapter.name}, started for this run`,
    isPassing: wanted.urls === undefined,
    stop: async () => {
      if (wanted.urls === undefined) await adapter.stop?.()
    },
  }
}

async function startNodes({ db, nodes: count }: Wanted, options: AdapterOptions): Promise<Service> {
  if (db !== undefined) await refuseUsed(db)
  const folder = db === undefined ? mkdtempSync(path.join(tmpdir(), 'verso-prove-')) : undefined
  const discard = () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', discard)
  const nodes = new Nodes(db ?? `sqlite:${path.join(folder ?? '', 'prove.db')}`)
  const stop = async () => {
    await nodes.stop()
    discard()
  }
  try {
    await nodes.start(count)
    const login = { user: nodes.username, password: nodes.password, key: undefined }
    const adapter = await chooseAdapter('verso', { ...options, ...OWN_MODEL, ...login })
    const place = db === undefined ? 'SQLite in a temporary folder' : shownDatabase(db)
    return {
      ...{ adapter, nodes, places: nodes.places, stop },
      name: `verso on ${place}`,
      isPassing: db === undefined,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Tables and records are made, and an administrator: not beside those of somebody else. */
async function refuseUsed(db: string): Promise<void> {
  const file = db.startsWith('sqlite:') ? db.slice('sqlite:'.length) : undefined
  const isUsed = file === undefined ? await withDatabase(db, hasInternalTables) : existsSync(file)
  if (isUsed)
    throw new ConfigError('Nothing was proved', [
      `${shownDatabase(db)} is in use already: name an empty one, or the service that runs on it with --url`,
    ])
}
