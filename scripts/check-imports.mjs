// Holds the order of the folders in src: a file imports from its own folder and from those to its left, and never in a circle.
import { readFileSync, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const order = ['errors', 'model', 'wire', 'store', 'service', 'http', 'cli']
const besideTheOrder = {
  client: ['errors', 'model', 'wire'],
  admin: ['client'],
}
const packageFace = 'index'
const packageHome = {
  '@photostructure/sqlite': 'store',
  pg: 'store',
  fastify: 'http',
  '@fastify/busboy': 'http',
  commander: 'cli',
  'csv-parse': 'cli',
  jiti: 'cli',
  '@clack/prompts': 'cli',
}

/** Faults of a tree given as path inside src → text, one line each. */
export function findFaults(tree) {
  const imports = new Map([...tree].map(([file, text]) => [file, readImports(tree, file, text)]))
  const misplaced = [...imports].flatMap(([file, found]) =>
    found.flatMap((one) => {
      const reason = objection(file, one)
      return reason ? [`src/${file} imports '${one.specifier}': ${reason}`] : []
    }),
  )
  return [...misplaced, ...findCycles(imports)]
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
  // TypeScript's own reader sees `import type`, `export … from` and `import()`, and is not fooled by comments or strings.
  const { importedFiles } = ts.preProcessFile(text, true, true)
  return importedFiles.map(({ fileName: specifier }) => {
    if (specifier === 'verso') return { specifier, target: 'index.ts' }
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

/** `model/field.ts` is in `model`; a file at the top, like `errors.ts`, counts as a folder. */
function folderOf(file) {
  const [first] = file.split('/')
  return first.replace(/\.tsx?$/, '')
}

function objection(file, imported) {
  const from = folderOf(file)
  if (imported.package) {
    const home = packageHome[imported.package]
    return home && home !== from && `only src/${home} may import ${imported.package}`
  }
  if (!imported.target) return 'no such file in src'
  const to = folderOf(imported.target)
  if (to === packageFace) return 'src/index.ts is the package face, nobody in src may import it'
  const allowed = foldersFor(from)
  if (!allowed) return `${from} has no place in the order of folders`
  return !allowed.includes(to) && `${from} may import only ${allowed.join(', ')}`
}

function foldersFor(folder) {
  if (folder === packageFace) return [...order, ...Object.keys(besideTheOrder)]
  if (order.includes(folder)) return order.slice(0, order.indexOf(folder) + 1)
  return besideTheOrder[folder] && [...besideTheOrder[folder], folder]
}

function findCycles(imports) {
  const faults = []
  const finished = new Set()
  const walk = (file, trail) => {
    for (const { specifier, target } of imports.get(file)) {
      if (!target || finished.has(target)) continue
      const start = [...trail, file].indexOf(target)
      if (start < 0) walk(target, [...trail, file])
      else {
        const circle = [...trail, file, target].slice(start).join(' → ')
        faults.push(`src/${file} imports '${specifier}': a cycle, ${circle}`)
      }
    }
    finished.add(file)
  }
  for (const file of imports.keys()) if (!finished.has(file)) walk(file, [])
  return faults
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  const tree = readTree(fileURLToPath(new URL('../src', import.meta.url)))
  const faults = findFaults(tree)
  console.log(faults.length > 0 ? faults.join('\n') : `imports in order: ${tree.size} files`)
  process.exitCode = faults.length > 0 ? 1 : 0
}
