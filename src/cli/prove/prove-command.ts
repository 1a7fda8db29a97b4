// `verso prove`: runs concurrent clients that edit records of a service, and reports lost updates.
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../errors.js'
import { hasInternalTables } from '../../store/schema/internal-tables.js'
import { redactDatabaseUrl, useDatabase } from '../open.js'
import { printJson } from '../terminal/listing.js'
import { createProgressBar } from '../terminal/progress.js'
import { chooseAdapter } from './adapters/adapter-choice.js'
import { NOTHING_TESTED, type AdapterOptions } from './adapters/adapter.js'
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
Exit code 0: no violation. 1: a violation, or the run failed. 2: invalid command line.

Examples:
  $ verso prove                                                  starts a service on SQLite and tests it
  $ verso prove --kills                                          kills and restarts it several times
  $ verso prove --db postgres://localhost/empty --nodes 3        starts three nodes on PostgreSQL
  $ verso prove --adapter last-write-wins                        tests a store that loses updates
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
    .description('test a service for lost updates: concurrent clients, dropped connections, killed nodes')
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
  const progress = await createProgressBar()
  try {
    let [shownSeconds, shownUpdates] = [0, 0]
    const result = await prove(target, plan, {
      onOpen: () => {
        process.stderr.write(`${target.name}: ${plan.clients} clients for ${plan.seconds} s …\n`)
        progress.begin('testing', plan.seconds)
      },
      onTick: (seconds, updates) => {
        progress.advance(seconds - shownSeconds, updates - shownUpdates)
        ;[shownSeconds, shownUpdates] = [seconds, updates]
      },
    })
    progress.end()
    return reportScoreboard(flags, target, plan, result)
  } finally {
    progress.end()
    await target.stop()
  }
}

/** Creates the file before the run, so that an unwritable path does not waste a long run. */
function createJournalFile(file: string): void {
  try {
    writeFileSync(file, '')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError(NOTHING_TESTED, [`the file of --journal cannot be written: ${why}`])
  }
}

function reportScoreboard(
  flags: ProveFlags,
  target: ProveTarget,
  plan: ProvePlan,
  result: ProveResult,
): number {
  const scoreboard = buildScoreboard(target, plan, result)
  if (flags.json) printJson(scoreboard)
  else process.stdout.write(formatScoreboard(scoreboard, plan.atLeast))
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
  if (!urls) throw new ConfigError(NOTHING_TESTED, ['--url is missing: name the address of the service'])
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
    throw new ConfigError(NOTHING_TESTED, [
      `${redactDatabaseUrl(db)} is in use; name an empty database, or test the running service with --url`,
    ])
}
