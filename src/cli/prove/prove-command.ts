// `verso prove`: lets many clients edit records of a service and reports whether it loses edits.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { hasInternalTables } from '../../store/schema/internal-tables.js'
import { redactDatabaseUrl, useDatabase } from '../open.js'
import { ProgressBar } from '../terminal/progress.js'
import { chooseAdapter } from './adapters/adapter-choice.js'
import type { AdapterOptions } from './adapters/adapter.js'
import { addProveFlags, readProveFlags, type ProveFlags, type ProveOptions } from './flags.js'
import { NodeCluster } from './run/node-cluster.js'
import { prove, type ProvedService, type ProvePlan, type ProveResult } from './run/proof.js'
import { formatScoreboard, buildScoreboard } from './scoreboard.js'
import { PROVE_MODEL } from './adapters/verso-adapter.js'
import { readSettings } from '../settings/read-settings.js'

const EXIT_VIOLATED = 1
const RUN_ID_BYTES = 6
const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const

const EXAMPLES = `
Exit code 0: nothing was lost. 1: something was, or the run could not be made. 2: the command line has a fault.

Examples:
  $ verso prove                                                  a service of its own, on SQLite
  $ verso prove --kills                                          which is killed now and then
  $ verso prove --db postgres://localhost/empty --nodes 3        three nodes on PostgreSQL
  $ verso prove --adapter last-write-wins                        a store that loses edits, to see it caught
  $ verso prove --url http://localhost:8080 --user ada --model crm.Note --field extra`

interface ProveTarget extends ProvedService {
  readonly name: string
  /** The service and its data are deleted after the run. */
  readonly isTemporary: boolean
  stop(): Promise<void>
}

export function addProveCommand(program: Command): void {
  const command = program
    .command('prove')
    .description('see whether a service loses edits: many clients, dropped connections, kills')
    .addHelpText('after', EXAMPLES)
  addProveFlags(command).action(async (flags: ProveFlags) => {
    const { provePassword: password, proveKey: key } = readSettings('prove', {}, process.env)
    const [options, errors] = readProveFlags(flags)
    if (errors.length > 0) command.error(errors.map((error) => `error: ${error}`).join('\n'))
    for (const [signal, code] of Object.entries(SIGNAL_EXIT_CODES))
      process.once(signal, () => process.exit(code))
    const secrets = { password: flags.password ?? password, key: flags.key ?? (flags.user ? undefined : key) }
    process.exitCode = await runProve(flags, options, secrets)
  })
}

async function runProve(
  flags: ProveFlags,
  options: ProveOptions,
  secrets: Pick<AdapterOptions, 'password' | 'key'>,
): Promise<number> {
  if (flags.journal !== undefined) createJournalFile(flags.journal)
  const name = `prove-${randomBytes(RUN_ID_BYTES).toString('hex')}`
  const target = await startTarget(flags, options, { ...secrets, run: name })
  const plan: ProvePlan = { ...options, run: name, removesRecords: !target.isTemporary }
  const progress = new ProgressBar()
  try {
    let [shownSeconds, shownUpdates] = [0, 0]
    const result = await prove(target, plan, {
      onOpen: () => {
        process.stderr.write(`${target.name}: ${plan.clients} clients for ${plan.seconds} s …\n`)
        progress.begin('proving', plan.seconds)
      },
      onTick: (seconds, updates) => {
        progress.advance(seconds - shownSeconds, updates - shownUpdates)
        ;[shownSeconds, shownUpdates] = [seconds, updates]
      },
    })
    progress.end()
    return reportScoreboard(flags, target, plan, result)
  } finally {
    await target.stop()
  }
}

/** Creates the file before the run, so that an unwritable path does not waste a long run. */
function createJournalFile(file: string): void {
  try {
    writeFileSync(file, '')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError('Nothing was proved', [`--journal cannot be written: ${why}`])
  }
}

function reportScoreboard(
  flags: ProveFlags,
  target: ProveTarget,
  plan: ProvePlan,
  result: ProveResult,
): number {
  const scoreboard = buildScoreboard(target, plan, result)
  process.stdout.write(
    flags.json ? `${JSON.stringify(scoreboard)}\n` : formatScoreboard(scoreboard, plan.atLeast),
  )
  if (flags.journal !== undefined)
    writeFileSync(
      flags.journal,
      result.journal.operations.map((operation) => `${JSON.stringify(operation)}\n`).join(''),
    )
  return scoreboard.violations.length > 0 || !scoreboard.isEnough ? EXIT_VIOLATED : 0
}

async function startTarget(
  flags: ProveFlags,
  proveOptions: ProveOptions,
  adapterOptions: AdapterOptions,
): Promise<ProveTarget> {
  if (proveOptions.urls === undefined && flags.adapter === 'verso')
    return startOwnNodes(proveOptions, adapterOptions)
  const { user, model, field, mark } = flags
  const adapter = await chooseAdapter(flags.adapter, { ...adapterOptions, user, model, field, mark })
  const urls = proveOptions.urls ?? (await adapter.start?.())
  if (!urls) throw new ConfigError('Nothing was proved', ['--url is missing: where is the service?'])
  return {
    adapter,
    addresses: urls.map((url) => ({ url })),
    name: proveOptions.urls
      ? `${adapter.name} at ${urls.join(', ')}`
      : `${adapter.name}, started for this run`,
    isTemporary: proveOptions.urls === undefined,
    stop: async () => {
      if (proveOptions.urls === undefined) await adapter.stop?.()
    },
  }
}

async function startOwnNodes(
  { db, nodes: count }: ProveOptions,
  options: AdapterOptions,
): Promise<ProveTarget> {
  if (db !== undefined) await refuseUsedDatabase(db)
  const folder = db === undefined ? mkdtempSync(path.join(tmpdir(), 'verso-prove-')) : undefined
  const discard = () => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', discard)
  const nodes = new NodeCluster(db ?? `sqlite:${path.join(folder ?? '', 'prove.db')}`)
  const stop = async () => {
    await nodes.stop()
    discard()
  }
  try {
    await nodes.start(count)
    const login = { user: nodes.username, password: nodes.password, key: undefined }
    const adapter = await chooseAdapter('verso', { ...options, ...PROVE_MODEL, ...login })
    const databaseName = db === undefined ? 'SQLite in a temporary folder' : redactDatabaseUrl(db)
    return {
      adapter,
      nodes,
      addresses: nodes.addresses,
      stop,
      name: `verso on ${databaseName}`,
      isTemporary: db === undefined,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Rejects a database that is in use, because prove creates tables, records and an administrator in it. */
async function refuseUsedDatabase(db: string): Promise<void> {
  const file = db.startsWith('sqlite:') ? db.slice('sqlite:'.length) : undefined
  const isUsed = file === undefined ? await useDatabase(db, hasInternalTables) : existsSync(file)
  if (isUsed)
    throw new ConfigError('Nothing was proved', [
      `${redactDatabaseUrl(db)} is in use already: name an empty one, or the service that runs on it with --url`,
    ])
}
