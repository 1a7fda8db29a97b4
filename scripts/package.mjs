// Makes the npm package: `npm run package [folder]` writes verso-records-<version>.tgz and prints its path. The package is staged in a temporary
// folder, because it differs from the checkout: no scripts and no development settings in package.json, no source maps, and the SQLite
// driver inside, without its install script. See docs/decisions/package.md.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildAdmin } from './admin.mjs'
import { copyApiReference } from './api-reference.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const CONTENT = ['deploy', 'docs', 'examples', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE']
const KEPT_FIELDS = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'type',
  'engines',
  'bin',
  'exports',
  'dependencies',
  'peerDependencies',
  'peerDependenciesMeta',
]
/** Packages that are part of the tarball, with the files and dependencies that they need at run time. */
const BUNDLED = {
  '@photostructure/sqlite': {
    files: ['dist', 'prebuilds', 'LICENSE', 'README.md'],
    dependencies: ['node-gyp-build'],
  },
  'node-gyp-build': { files: ['index.js', 'node-gyp-build.js', 'LICENSE', 'README.md'], dependencies: [] },
}
/** Fields of a bundled package.json that npm must not see: they start or announce an install script, or are of no use there. */
const DROPPED_FIELDS = ['scripts', 'gypfile', 'binary', 'devDependencies', 'bin']

/** Stages the package and packs it. Returns the path of the tarball. */
export function makePackage(destination) {
  const staging = mkdtempSync(path.join(tmpdir(), 'verso-package-'))
  try {
    const source = readJson(path.join(root, 'package.json'))
    const bundleDependencies = Object.keys(BUNDLED)
    const dependencies = { ...source.dependencies, ...pickVersions(bundleDependencies) }
    const staged = Object.fromEntries(KEPT_FIELDS.map((field) => [field, source[field]]))
    writeJson(path.join(staging, 'package.json'), { ...staged, dependencies, bundleDependencies })
    for (const name of CONTENT) cpSync(path.join(root, name), path.join(staging, name), { recursive: true })
    compile(path.join(staging, 'dist'))
    copyApiReference(path.join(staging, 'dist'))
    buildAdmin(path.join(staging, 'dist'))
    for (const [name, content] of Object.entries(BUNDLED)) bundle(name, content, staging)
    mkdirSync(destination, { recursive: true })
    const printed = execFileSync(
      'npm',
      ['pack', '--json', '--loglevel', 'error', '--pack-destination', path.resolve(destination)],
      {
        cwd: staging,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    const packed = JSON.parse(printed)
    const { filename } = Array.isArray(packed) ? packed[0] : Object.values(packed)[0]
    return path.resolve(destination, filename)
  } finally {
    rmSync(staging, { recursive: true })
  }
}

function pickVersions(names) {
  return Object.fromEntries(
    names.map((name) => [name, readJson(path.join(root, 'node_modules', name, 'package.json')).version]),
  )
}

function bundle(name, { files, dependencies }, staging) {
  const from = path.join(root, 'node_modules', name)
  const to = path.join(staging, 'node_modules', name)
  for (const file of files)
    cpSync(path.join(from, file), path.join(to, file), {
      recursive: true,
      filter: (entry) => !entry.endsWith('.map'),
    })
  removeMapComments(to)
  const source = readJson(path.join(from, 'package.json'))
  const kept = Object.fromEntries(Object.entries(source).filter(([field]) => !DROPPED_FIELDS.includes(field)))
  const needed = Object.entries(source.dependencies ?? {}).filter(([dependency]) =>
    dependencies.includes(dependency),
  )
  writeJson(path.join(to, 'package.json'), { ...kept, dependencies: Object.fromEntries(needed) })
}

/** Compiles into an empty folder, so that no output of removed files is packed. The sources are not in the package, so there are no maps. */
function compile(folder) {
  const compiler = path.join(root, 'node_modules/@typescript/native/bin/tsc')
  const options = ['-p', 'tsconfig.build.json', '--outDir', folder, '--sourceMap', 'false']
  execFileSync(process.execPath, [compiler, ...options], { cwd: root, stdio: 'inherit' })
}

/** A map would lead to files that are not in the package. */
function removeMapComments(folder) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!/\.[cm]?js$/.test(entry.name)) continue
    const file = path.join(entry.parentPath, entry.name)
    writeFileSync(file, readFileSync(file, 'utf8').replace(/\n\/\/# sourceMappingURL=.*\n?$/, '\n'))
  }
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${makePackage(process.argv[2] ?? '.')}\n`)
}
