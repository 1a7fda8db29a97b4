// The flags of npm run bench, and the sections that they choose.
import { CLIENTS } from './client-kinds.mjs'
import { CLIENTS_DEFAULTS } from './clients.mjs'
import { readFlags } from './flags.mjs'
import { OPERATIONS, RECORDS_EACH } from './requests.mjs'
import { BEFORE, PEERS, SERVERS } from './servers.mjs'
import { SIDE_BY_SIDE_DEFAULTS } from './side-by-side.mjs'

const OURS = Object.keys(SERVERS).filter((name) => !PEERS.includes(name) && !BEFORE.includes(name))
const KINDS = Object.keys(CLIENTS)
const LEAST_ROWS = 200
const CLIENT_SERVERS = ['verso', 'versoPostgres', 'static']
const USAGE = `npm run bench -- [--client all|${KINDS.join('|')}] [--seconds <s>] [--rounds <n>] [--connections 32] [--rows <n>]
  [--only ${Object.keys(OPERATIONS).join(',')}]
  [--servers ${OURS.join(',')}] [--peers all|none|${PEERS.join(',')}] [--markdown <file>] [--svg <file>]
  [--before <another checkout, built>: measures that build beside this one, in the same rounds]
  [--starts <n>: starts of each build, which share the rounds]
One kind of client: servers side by side. Several kinds: the kinds in turns. Neither: both sections.`

/** Returns { sideBySide, clients }: the flags of each section that the arguments choose. */
export function readOptions(args) {
  const given = readFlags(
    USAGE,
    {
      ...{ seconds: {}, rounds: {}, rows: {}, starts: {}, connections: { number: 32 } },
      ...{ only: { names: Object.keys(OPERATIONS), initial: null }, servers: { names: OURS, initial: null } },
      ...{ peers: { names: PEERS }, client: { names: KINDS, initial: null } },
      ...{ markdown: { file: true }, svg: { file: true }, before: { file: true } },
    },
    args,
  )
  const { client: kinds, ...flags } = given
  if (kinds?.length === 0) throw new Error(`--client takes at least one name\n${USAGE}`)
  return {
    ...(kinds === undefined || kinds.length === 1 ? { sideBySide: fillSideBySide(flags, kinds) } : {}),
    ...(kinds === undefined || kinds.length > 1 ? { clients: fillClients(flags, kinds) } : {}),
  }
}

function fillSideBySide(flags, [client] = ['cookie']) {
  const filled = fillIn(flags, { servers: OURS, ...SIDE_BY_SIDE_DEFAULTS })
  if (filled.starts > 1 && filled.before === undefined) throw new Error('--starts needs --before')
  return { ...checkRounds(filled, 1), clients: [client], client }
}

function fillClients(flags, clients = KINDS) {
  const filled = fillIn(flags, CLIENTS_DEFAULTS)
  const servers = filled.servers.filter((name) => CLIENT_SERVERS.includes(name))
  // A proxy has a client with a cookie beside it.
  return { ...checkRounds(filled, clients.length + 1), servers, clients }
}

/** Flags that were not given take the defaults of a section. */
function fillIn(flags, defaults) {
  const given = Object.entries(flags).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) }
}

function checkRounds(flags, kinds) {
  const { rows, rounds, starts, connections } = flags
  if (rows < Math.max(kinds * connections * RECORDS_EACH, LEAST_ROWS))
    throw new Error(
      `--rows must be at least ${kinds * connections * RECORDS_EACH} for these connections and kinds, and ${LEAST_ROWS}`,
    )
  if (rounds % starts !== 0) throw new Error('--rounds must be a multiple of --starts')
  return flags
}
