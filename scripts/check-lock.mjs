// Checks that package-lock.json installs anywhere: from any registry, on every platform, without install scripts.
import { readFileSync, realpathSync } from 'node:fs'

// The registry flags fsevents because its repository holds a binding.gyp, and npm copies the flag into some locks only.
// The built file is in the tarball, only macOS installs it, and vite works without it.
const flaggedByMistake = 'fsevents'

/** Returns the faults of a parsed package-lock.json, given the package.json beside it. */
export function findFaults(lock, manifest) {
  const reviewed = new Set(Object.keys(manifest.allowScripts ?? {}).map(withoutVersion))
  return Object.entries(lock.packages).flatMap(([place, entry]) => [
    ...hostFaults(place, entry),
    ...platformFaults(lock.packages, place, entry),
    ...scriptFaults(reviewed, place, entry),
  ])
}

function hostFaults(place, entry) {
  if (!entry.resolved?.includes('://')) return []
  return [`${place} is tied to a host: ${entry.resolved}`]
}

// npm omits the packages of other platforms when it writes a lock over an existing node_modules.
function platformFaults(packages, place, entry) {
  return Object.keys(entry.optionalDependencies ?? {})
    .filter((name) => !isReachable(packages, place, name))
    .map((name) => `${place || 'package.json'} wants the optional ${name}, which is not in the lock`)
}

function scriptFaults(reviewed, place, entry) {
  const name = entry.name ?? place.split('node_modules/').at(-1)
  if (!entry.hasInstallScript || place === '' || name === flaggedByMistake || reviewed.has(name)) return []
  return [`${place} has an install script that allowScripts in package.json does not name: ${name}`]
}

/** Resolves like Node: in the package's own node_modules, then in those of its parents. */
function isReachable(packages, place, name) {
  const folder = place === '' ? '' : `${place}/`
  if (packages[`${folder}node_modules/${name}`]) return true
  if (place === '') return false
  const around = place.slice(0, Math.max(0, place.lastIndexOf('node_modules/') - 1))
  return isReachable(packages, around, name)
}

function withoutVersion(key) {
  return key.replace(/(?<=.)@.*$/, '')
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'))
  const lock = read('package-lock.json')
  const faults = findFaults(lock, read('package.json'))
  const size = Object.keys(lock.packages).length
  console.log(faults.length > 0 ? faults.join('\n') : `lock complete for every platform: ${size} packages`)
  process.exitCode = faults.length > 0 ? 1 : 0
}
