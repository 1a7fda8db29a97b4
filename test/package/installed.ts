// The package as users get it: packed, and installed into an empty project.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { makePackage } from '../../scripts/package.mjs'
import { makeOnce } from '../made-once.js'

/** npm as it was installed with the Node that runs the tests. */
export const NPM = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())

/** Returns the path of the tarball. */
export async function findTarball(): Promise<string> {
  return makeOnce('package', (folder) => makePackage(folder))
}

/** Returns a project in which the package is installed. Tests copy it, because an installation takes long. */
export async function findInstalledProject(): Promise<string> {
  const tarball = await findTarball()
  return makeOnce('project', (folder) => {
    mkdirSync(folder)
    const { printed, status } = installPackage(folder, tarball, process.execPath)
    if (status !== 0) throw new Error(printed)
    return folder
  })
}

/** Installs the package into an empty folder with a version of Node, without the npm settings of the user. */
export function installPackage(folder: string, tarball: string, node: string) {
  writeFileSync(path.join(folder, 'package.json'), '{"name":"empty-project","private":true}')
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_config_(?!registry|cache|proxy|https_proxy|cafile|strict_ssl)/i.test(name),
  )
  const PATH = `${path.dirname(node)}:${process.env['PATH'] ?? ''}`
  const env = {
    ...Object.fromEntries(inherited),
    npm_config_userconfig: writeNpmSettings(),
    npm_config_prefer_offline: 'true',
    PATH,
  }
  const words = [NPM, 'install', '--no-audit', '--no-fund', tarball]
  const { stdout, stderr, status } = spawnSync(node, words, { cwd: folder, env, encoding: 'utf8' })
  return { PATH, printed: stdout + stderr, status }
}

function writeNpmSettings(): string {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'verso-npm-')), 'npmrc')
  writeFileSync(file, `registry=${registry}\n`)
  return file
}
