// Checks the imports in src and admin: a file imports from its own place and from places before it in one total order,
// without cycles.
import { readFileSync, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** The order of the web application: folders, and files beside them. It knows the client of the package only. */
const ADMIN_ORDER = [
  'service',
  'texts',
  'theme',
  'layout',
  'sign-in',
  'fields',
  'list',
  'history',
  'account',
  'editor',
  'conflict',
  'form',
  'home',
  'app',
  'entrance',
  'main',
  'vite.config',
]

/**
 * One order for all places in src: a subfolder, or a file beside subfolders. A file imports from its own place and from
 * those above it in this list, so no two places import each other.
 */
const ORDER = [
  'errors',
  'model/values',
  'model/definition',
  'model/query',
  'model/catalog',
  'model/write',
  'model/access',
  'wire',
  'client/types',
  'client',
  'react-admin',
  'formats',
  'formats/domain-xml',
  'store/engine',
  'store/sql',
  'store/counters',
  'store/auth',
  'store/records',
  'store/log',
  'store/find',
  'store/webhooks',
  'store/hooks',
  'store/schema',
  'store/verify',
  'store/backup',
  'store/postgres',
  'store/sqlite/disk',
  'store/sqlite',
  'store/diagnosis',
  'store/open',
  'service/egress',
  'service/context',
  'service/clock',
  'service/access',
  'service/log',
  'service/input',
  'service/write',
  'service/records',
  'service/hooks',
  'service/background',
  'service/auth',
  'service/webhooks',
  'service/transfer',
  'service/maintenance',
  'service/backup',
  'service/create-app',
  'http/compat',
  'http/settings',
  'http/connection',
  'http/response',
  'http/assets',
  'http/request',
  'http/route',
  'http/auth',
  'http/records',
  'http/feed',
  'http/webhooks',
  'http/meta',
  'http/openapi',
  'http/ext',
  'http/admin',
  'http/docs',
  'http/docs/page',
  'http/metrics',
  'http/fastify',
  'http/routes',
  'http/handler',
  'http/server',
  'embedding',
  'cli/package-files',
  'cli/file-error',
  'cli/low-priority',
  'cli/terminal',
  'cli/settings',
  'cli/models',
  'cli/open',
  'cli/app-command',
  'cli/accounts',
  'cli/data',
  'cli/schema',
  'cli/doctor',
  'cli/serve',
  'cli/prove/adapters',
  'cli/prove/checks',
  'cli/prove/run',
  'cli/prove',
  'cli/environment-file',
  'cli/program',
  'cli/main',
  'cli/node-process',
]
const packageFace = 'index'
const SOURCE = /\.[cm]?[jt]sx?$/
const packageHome = {
  '@photostructure/sqlite': 'store',
  pg: 'store',
  'prom-client': 'http',
  fastify: 'http',
  '@fastify/ajv-compiler': 'http',
  'ra-core': 'react-admin',
  '@fastify/busboy': 'http',
  commander: 'cli',
  'csv-parse': 'cli',
  jiti: 'cli',
  '@clack/prompts': 'cli',
}

/** A tree of sources: the folder, the order of its places, and the packages that only one of them may import. */
const SRC = { folder: 'src', order: ORDER, packageHome }
export const ADMIN = { folder: 'admin', order: ADMIN_ORDER, packageHome: {} }

/** Returns the faults of a tree, given as path inside its folder → text. */
export function findFaults(tree, rules = SRC) {
  const imports = new Map([...tree].map(([file, text]) => [file, readImports(tree, file, text)]))
  const misplaced = [...imports].flatMap(([file, found]) =>
    found.flatMap((one) => {
      const reason = objection(file, one, rules)
      return reason ? [`${rules.folder}/${file} imports '${one.specifier}': ${reason}`] : []
    }),
  )
  return [...misplaced, ...findCycles(imports, rules.folder)]
}

export function readTree(root) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const files = entries.map((entry) => path.join(entry.parentPath, entry.name)).sort()
  return new Map(
    files.map((file) => [path.relative(root, file).replaceAll(path.sep, '/'), readFileSync(file, 'utf8')]),
  )
}

function readImports(tree, file, text) {
  // TypeScript's own scanner finds `import type`, `export … from` and `import()`, and ignores comments and strings.
  const { importedFiles } = ts.preProcessFile(text, true, true)
  return importedFiles.map(({ fileName: specifier }) => {
    if (specifier === 'verso-records') return { specifier, target: 'index.ts' }
    if (!specifier.startsWith('.')) return { specifier, package: packageName(specifier) }
    return { specifier, target: resolve(tree, file, specifier) }
  })
}

function packageName(specifier) {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function resolve(tree, file, specifier) {
  const target = path.posix.join(path.posix.dirname(file), specifier)
  const sources = [target, target.replace(/js$/, 'ts'), target.replace(/js$/, 'tsx')]
  return sources.find((source) => tree.has(source))
}

/** `store/sql/select.ts` is in `store/sql`; a file beside subfolders, like `cli/main.ts`, is a place of its own. */
function placeOf(file, order) {
  const folder = path.posix.dirname(file)
  return order.includes(folder) || folder.includes('/') ? folder : file.replace(/\.tsx?$/, '')
}

function objection(file, imported, { folder, order, packageHome }) {
  const from = placeOf(file, order)
  if (imported.package) {
    const home = packageHome[imported.package]
    return home && home !== file.split('/')[0] && `only ${folder}/${home} may import ${imported.package}`
  }
  if (!imported.target) return `no such file in ${folder}`
  // A picture or a style sheet imports nothing.
  if (!SOURCE.test(imported.target)) return false
  const to = placeOf(imported.target, order)
  if (to === packageFace) return 'src/index.ts is the package face, nobody in src may import it'
  if (from === packageFace) return false
  const missing = [from, to].find((place) => !order.includes(place))
  if (missing) return `${missing} has no place in the order of scripts/check-imports.mjs`
  return order.indexOf(to) > order.indexOf(from) && `${from} stands before ${to} in the order of places`
}

function findCycles(imports, folder) {
  const faults = []
  const finished = new Set()
  const walk = (file, trail) => {
    for (const { specifier, target } of imports.get(file)) {
      if (!target || finished.has(target)) continue
      const start = [...trail, file].indexOf(target)
      if (start < 0) walk(target, [...trail, file])
      else {
        const circle = [...trail, file, target].slice(start).join(' → ')
        faults.push(`${folder}/${file} imports '${specifier}': a cycle, ${circle}`)
      }
    }
    finished.add(file)
  }
  for (const file of imports.keys()) if (!finished.has(file)) walk(file, [])
  return faults
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  const trees = [SRC, ADMIN].map((rules) => {
    const tree = readTree(fileURLToPath(new URL(`../${rules.folder}`, import.meta.url)))
    return { size: tree.size, faults: findFaults(tree, rules) }
  })
  const faults = trees.flatMap((each) => each.faults)
  const size = trees.reduce((sum, each) => sum + each.size, 0)
  console.log(faults.length > 0 ? faults.join('\n') : `imports in order: ${size} files`)
  process.exitCode = faults.length > 0 ? 1 : 0
}
