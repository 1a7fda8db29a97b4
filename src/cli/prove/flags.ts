// Flags of `verso prove` and their checks. All errors are reported together.
import { randomInt } from 'node:crypto'
import type { Command } from 'commander'
import { addJsonFlag } from '../terminal/listing.js'
import * as types from '../settings/setting-types.js'
import type { OptionType } from '../settings/setting-types.js'

const DEFAULT_NODES = { sqlite: 1, postgres: 3 }
const SECONDS_BETWEEN_KILLS = 5
const MAX_SEED = 2 ** 31

/** Option values as commander passes them. */
export interface ProveFlags {
  readonly url?: readonly string[]
  readonly user?: string
  readonly password?: string
  readonly key?: string
  readonly model?: string
  readonly field?: string
  readonly mark?: string
  readonly db?: string
  readonly nodes?: string
  readonly adapter: string
  readonly seconds: string
  readonly clients: string
  readonly records: string
  readonly seed?: string
  readonly kills?: string | true
  readonly drop: string
  readonly keyed: string
  readonly duplicates: string
  readonly atLeast: string
  readonly journal?: string
  readonly json?: boolean
}

/** Parsed and checked flags. */
export interface ProveOptions {
  /** Undefined if prove starts its own nodes. */
  readonly urls: readonly string[] | undefined
  /** Undefined for SQLite in a temporary folder. */
  readonly db: string | undefined
  readonly nodes: number
  readonly seconds: number
  readonly clients: number
  readonly records: number
  readonly seed: number
  readonly kills: number
  readonly drop: number
  readonly keyed: number
  readonly duplicates: number
  readonly atLeast: number
}

export function addProveFlags(command: Command): Command {
  return addJsonFlag(command)
    .option('--seconds <number>', 'duration of the run', '60')
    .option('--clients <number>', 'number of concurrent clients', '16')
    .option(
      '--records <number>',
      'number of records that the clients edit; fewer records cause more conflicts',
      '10',
    )
    .option(
      '--drop <share>',
      'share of requests whose connection is closed before the response, 0 to 1',
      '0.01',
    )
    .option(
      '--keyed <share>',
      'share of updates and deletes with an Idempotency-Key, 0 to 1; creates always have one',
      '0.9',
    )
    .option('--duplicates <share>', 'share of writes that are sent twice with the same key, 0 to 1', '0.02')
    .option(
      '--kills [number]',
      'number of times to kill a node with SIGKILL and restart it; default without a number: every 5 s',
    )
    .option('--seed <number>', 'seed of the random choices, to repeat those of an earlier run')
    .option(
      '--at-least <number>',
      'extend the run until this many updates have succeeded and this many have conflicted, to at most three times its duration (at least 90 s)',
      '0',
    )
    .option(
      '--db <url>',
      'empty database for the nodes that prove starts; default: SQLite in a temporary folder',
    )
    .option('--nodes <number>', 'number of nodes to start; default: 3 on PostgreSQL, else 1')
    .option(
      '--url <url...>',
      'test the running service at this address; several addresses are nodes of one service',
    )
    .option('--user <name>', 'user name at that service; set the password in VERSO_PROVE_PASSWORD')
    .option(
      '--password <password>',
      'password of that user; other users of this computer can see it, so prefer VERSO_PROVE_PASSWORD',
    )
    .option(
      '--key <key>',
      'API key instead of a user; other users of this computer can see it, so prefer VERSO_PROVE_KEY',
    )
    .option('--model <name>', 'model to create records of; prove deletes them at the end')
    .option('--field <name>', 'json field of that model to edit')
    .option('--mark <name>', 'string field that stores the id of the run; needed to check totals')
    .option(
      '--adapter <name>',
      'adapter for the service: verso, last-write-wins, or a file that exports one',
      'verso',
    )
    .option(
      '--journal <file>',
      'write all requests and responses of the clients to this file, one JSON object per line',
    )
}

const shareType: OptionType<number> = {
  mustBe: 'a share from 0 to 1, such as 0.05',
  parse: (text) => (/^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined),
}
const addressType: OptionType<string> = {
  mustBe: 'an address such as http://localhost:8080',
  parse: (text) => (/^https?:\/\//.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : undefined),
}

/** Returns the options and the list of errors; the options are valid only if the list is empty. */
export function readProveFlags(flags: ProveFlags): readonly [ProveOptions, readonly string[]] {
  const errors: string[] = []
  const read = <T>(flag: string, kind: OptionType<T>, text: string | undefined): T | undefined => {
    const value = text === undefined ? undefined : kind.parse(text)
    if (text !== undefined && value === undefined)
      errors.push(`--${flag} must be ${kind.mustBe}${kind.isSecret ? '' : `, not "${text}"`}`)
    return value
  }
  const number = (flag: string, text: string | undefined, min: number, max: number) =>
    read(flag, types.boundedInteger(min, max), text)
  const db = read('db', types.database, flags.db)
  const urls = flags.url?.map((url) => read('url', addressType, url) ?? '')
  const defaultNodes = /^postgres/.test(flags.db ?? '') ? DEFAULT_NODES.postgres : DEFAULT_NODES.sqlite
  const seconds = number('seconds', flags.seconds, 1, 86_400) ?? 1
  const defaultKills = Math.max(1, Math.floor(seconds / SECONDS_BETWEEN_KILLS))
  const options: ProveOptions = {
    urls,
    db,
    seconds,
    nodes: urls?.length ?? number('nodes', flags.nodes, 1, 20) ?? defaultNodes,
    // A single client cannot cause a conflict.
    clients: number('clients', flags.clients, 2, 1_000) ?? 0,
    records: number('records', flags.records, 1, 1_000) ?? 0,
    seed: number('seed', flags.seed, 0, MAX_SEED) ?? randomInt(MAX_SEED),
    kills: flags.kills === true ? defaultKills : (number('kills', flags.kills, 0, 1_000) ?? 0),
    drop: read('drop', shareType, flags.drop) ?? 0,
    keyed: read('keyed', shareType, flags.keyed) ?? 0,
    duplicates: read('duplicates', shareType, flags.duplicates) ?? 0,
    atLeast: number('at-least', flags.atLeast, 0, 1_000_000_000) ?? 0,
  }
  return [options, [...errors, ...findContradictions(flags)]]
}

/** Finds flags that need or exclude each other. */
function findContradictions(flags: ProveFlags): string[] {
  const { url, adapter } = flags
  const listSet = (...names: readonly (keyof ProveFlags)[]) =>
    names.filter((name) => flags[name] !== undefined)
  const isVerso = adapter === 'verso'
  const useless = (names: readonly string[], why: string) => names.map((name) => `--${name} ${why}`)
  if (url === undefined)
    return [
      ...useless(listSet('user', 'password', 'key', 'model', 'field', 'mark'), 'needs --url'),
      ...(isVerso
        ? []
        : useless(
            listSet('db', 'nodes', 'kills'),
            'applies only to nodes that prove starts, and needs --adapter verso',
          )),
    ]
  const missing = isVerso ? (['model', 'field'] as const).filter((name) => flags[name] === undefined) : []
  return [
    ...useless(
      listSet('db', 'nodes', 'kills'),
      'applies only to nodes that prove starts; leave it out, or leave --url out',
    ),
    ...useless(missing, 'is missing: --url needs --model and --field, a json field of that model'),
    ...(flags.user !== undefined && flags.key !== undefined ? ['use either --user or --key, not both'] : []),
    ...(adapter === 'last-write-wins'
      ? ['--adapter last-write-wins starts its own store; leave --url out']
      : []),
  ]
}
