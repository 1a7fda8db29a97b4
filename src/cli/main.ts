#!/usr/bin/env node
// Checks the version of Node before it loads the program: an older Node fails while it links the imports, with an error about syntax.
const MIN_VERSION = '20.19'

if (isOlder(process.versions.node, MIN_VERSION)) {
  process.stderr.write(
    `Verso needs Node ${MIN_VERSION} or later; this is Node ${process.versions.node}. Install a newer version from https://nodejs.org\n`,
  )
  process.exitCode = 1
} else {
  // A node that `prove` starts must not read settings that are meant for another service.
  if (process.send === undefined) (await import('./environment-file.js')).loadEnvironmentFile()
  await import('./program.js')
}

function isOlder(version: string, minVersion: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [minMajor = 0, minMinor = 0] = minVersion.split('.').map(Number)
  return major < minMajor || (major === minMajor && minor < minMinor)
}

export {}
