// Builds the web application of admin/ into a build: `admin/index.html`, its files in `admin/assets`, compressed, and the licences of the
// packages in them. See docs/decisions/package.md.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/** Everything that changes the output: the application, the parts of src that it imports, the packages, and the build itself. */
const INPUTS = [
  'admin',
  'src/client',
  'src/react-admin',
  'src/wire.ts',
  'package-lock.json',
  'scripts/admin.mjs',
  'scripts/admin-bundle.mjs',
].map((name) => path.join(root, name))
const MAX_REPLACEMENTS = 10

/** Writes `admin` into the folder of a build, unless the one there is newer than every input. */
export function buildAdmin(dist) {
  const target = path.join(dist, 'admin')
  if (isCurrent(path.join(target, 'index.html'))) return
  const start = new Date()
  const folder = mkdtempSync(path.join(dist, '.admin-'))
  const made = path.join(folder, 'new')
  try {
    // In a process of its own: Vite reads NODE_ENV, which is `test` in a test runner.
    execFileSync(process.execPath, [path.join(root, 'scripts/admin-bundle.mjs'), made], {
      env: { ...process.env, NODE_ENV: 'production' },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    // An input that changes during the build is newer than the output.
    utimesSync(path.join(made, 'index.html'), start, start)
    replaceFolder(target, made, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function isCurrent(output) {
  return existsSync(output) && INPUTS.every((input) => findNewest(input) < statSync(output).mtimeMs)
}

/** The time of the newest file or folder. A folder is changed by the removal of a file. */
function findNewest(input) {
  const stats = statSync(input)
  if (!stats.isDirectory()) return stats.mtimeMs
  const names = readdirSync(input, { recursive: true, encoding: 'utf8' })
  const times = names.map((name) => statSync(path.join(input, name), { throwIfNoEntry: false })?.mtimeMs ?? 0)
  return Math.max(stats.mtimeMs, ...times)
}

/** Servers read the whole folder at their first request, so it changes as a whole. Two builds may run at the same time. */
function replaceFolder(target, made, trash) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      if (existsSync(target)) renameSync(target, path.join(trash, `old-${attempt}`))
      renameSync(made, target)
      return
    } catch (error) {
      if (attempt >= MAX_REPLACEMENTS || !['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildAdmin(path.join(root, 'dist'))
