// Builds the container of deploy/Dockerfile without a container engine: its steps run in a chroot made from Debian. Needs root.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { NPM } from '../package/installed.js'
import { parseContainerFile, parseIgnoreFile, type ContainerStage } from './container-file.js'
import { readDeployFile } from './unit-file.js'

/** Memory would be wasted on a whole Debian, and a mount of the test's own files could forbid devices. */
const FOLDER = '/var/tmp'
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
const MIRROR = 'http://deb.debian.org/debian'

export interface Image {
  readonly root: string
  readonly user: { readonly uid: number; readonly gid: number }
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  readonly volume: string
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly healthcheck: readonly string[]
}

interface Chroot {
  readonly root: string
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  /** Absent: root, as in a step of a build. */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** Absent: the root file system is writable, as in a step of a build. */
  readonly volume?: { readonly folder: string; readonly path: string }
}

/** Fails where containers cannot be made, with what is missing. */
export function requireChroot(): void {
  if (process.getuid?.() !== 0)
    throw new Error('this test needs root, because it runs the steps of the container file in a chroot')
  for (const program of ['debootstrap', 'unshare', 'setpriv', 'chroot'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
      throw new Error(
        `${program} is not installed: this test needs it (on Debian: apt-get install ${program})`,
      )
}

export function makeBuildFolder(): string {
  return mkdtempSync(path.join(FOLDER, 'verso-container-'))
}

/** Builds the stages in `folder` with the files of the project. */
export function buildImage(project: string, folder: string): Image {
  const stages = parseContainerFile(readDeployFile('Dockerfile'))
  const base = makeBase(path.join(folder, 'base'), stages)
  const built = new Map<string, string>()
  let image: Image | undefined
  for (const [index, stage] of stages.entries()) {
    const root = path.join(folder, `stage-${index}`)
    // Hard links are enough: no step writes into a file of the base.
    execFileSync('cp', ['-al', base, root])
    image = buildStage(stage, root, (name) =>
      name === undefined ? makeContext(project, folder) : built.get(name),
    )
    built.set(stage.name ?? '', root)
  }
  if (!image) throw new Error('the container file has no stage')
  return image
}

/** An image such as node:22-bookworm-slim: a minimal Debian with node, npm and the user "node". */
function makeBase(root: string, stages: readonly ContainerStage[]): string {
  const [, version = '', suite = ''] = /^node:(\d+)-(\w+)-slim$/.exec(stages[0]?.image ?? '') ?? []
  if (stages.some(({ image }) => image !== stages[0]?.image))
    throw new Error('the stages differ in their image')
  const include = '--include=ca-certificates,libstdc++6'
  execFileSync('debootstrap', ['--variant=minbase', include, suite, root, MIRROR], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (const file of ['/etc/resolv.conf', '/etc/hosts', CERTIFICATES])
    cpSync(file, path.join(root, file), { dereference: true })
  const node = mkdtempSync(path.join(FOLDER, 'verso-node-'))
  writeFileSync(path.join(node, 'package.json'), '{"private":true}')
  const name = `node-${process.platform}-${process.arch}`
  execFileSync(process.execPath, [NPM, 'install', '--no-audit', '--no-fund', `${name}@${version}`], {
    cwd: node,
    stdio: 'ignore',
  })
  const local = path.join(root, 'usr/local')
  cpSync(path.join(node, 'node_modules', name, 'bin/node'), path.join(local, 'bin/node'))
  mkdirSync(path.join(local, 'lib/node_modules'), { recursive: true })
  cpSync(path.join(NPM, '../..'), path.join(local, 'lib/node_modules/npm'), {
    recursive: true,
    dereference: true,
  })
  execFileSync('ln', ['-s', '../lib/node_modules/npm/bin/npm-cli.js', path.join(local, 'bin/npm')])
  execFileSync('rm', ['-rf', node])
  execFileSync('chroot', [root, 'useradd', '--uid', '1000', '--create-home', 'node'])
  return root
}

/** The files of the project that the ignore file permits. */
function makeContext(project: string, folder: string): string {
  const isPermitted = parseIgnoreFile(readDeployFile('Dockerfile.dockerignore'))
  const context = path.join(folder, 'context')
  mkdirSync(context)
  for (const name of readdirSync(project).filter(isPermitted))
    cpSync(path.join(project, name), path.join(context, name), { recursive: true })
  return context
}

function buildStage(
  stage: ContainerStage,
  root: string,
  findSource: (stage: string | undefined) => string | undefined,
): Image {
  const env: Record<string, string> = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }
  const words: Record<'entrypoint' | 'cmd' | 'healthcheck', readonly string[]> = {
    entrypoint: [],
    cmd: [],
    healthcheck: [],
  }
  let [workdir, user, volume] = ['/', { uid: 0, gid: 0 }, '']
  for (const step of stage.steps) {
    if (step.kind === 'env')
      env[step.name] = step.value.replaceAll(/\$([A-Z_]+)/g, (_, name: string) => env[name] ?? '')
    else if (step.kind === 'user') user = { uid: step.uid, gid: step.gid }
    else if (step.kind === 'volume') volume = step.path
    else if (step.kind === 'workdir') {
      workdir = step.path
      mkdirSync(path.join(root, workdir), { recursive: true })
    } else if (step.kind === 'copy') {
      const source = findSource(step.fromStage)
      if (source === undefined) throw new Error(`there is no stage ${String(step.fromStage)}`)
      const to = path.join(root, path.resolve(workdir, step.to))
      execFileSync('cp', ['-a', '--no-preserve=ownership', `${path.join(source, step.from)}/.`, to])
    } else if (step.kind === 'run') runStep(step.command, { root, workdir, env })
    else if (step.kind !== 'expose') words[step.kind] = step.words
  }
  return { root, user, workdir, env, volume, ...words }
}

function runStep(command: string, chroot: Chroot): void {
  // As the arguments that a build gets for the network of its computer.
  const network = {
    NODE_EXTRA_CA_CERTS: existsSync(CERTIFICATES) ? CERTIFICATES : '',
    npm_config_registry: execFileSync(process.execPath, [NPM, 'config', 'get', 'registry'], {
      encoding: 'utf8',
    }).trim(),
  }
  const [program, ...args] = enter({ ...chroot, env: { ...chroot.env, ...network } }, [
    '/bin/sh',
    '-c',
    command,
  ])
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`RUN ${command} failed with ${String(status)}: ${stdout}${stderr}`)
}

/** As a container engine mounts: process numbers of its own, a /tmp in memory, the volume, and everything else read-only. */
const MOUNT = `
root=$1 folder=$2 path=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
if [ -n "$path" ]; then
  mount -t tmpfs tmpfs "$root/tmp"
  mount --bind "$folder" "$root$path"
  mount -o remount,bind,ro "$root"
fi
exec chroot "$root" "$@"`

/** Returns the words that run a command in a chroot, as process 1. */
function enter(
  { root, workdir, env, user, volume }: Chroot,
  command: readonly string[],
): [string, ...string[]] {
  const ids = user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : []
  const limits = user ? ['setpriv', ...ids, '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'] : []
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  return [
    'unshare',
    ...['--mount', '--pid', '--fork', '--kill-child=KILL', 'sh', '-euc', MOUNT, 'mount'],
    ...[root, volume?.folder ?? '', volume?.path ?? ''],
    ...limits,
    ...['env', '-i', '-C', workdir, ...variables, ...command],
  ]
}

export interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>
  /** The content of the volume. */
  readonly data: string
}

/** Runs a command as the user of the image, on a read-only root file system. */
export function startInContainer(
  image: Image,
  command: readonly string[],
  options: ContainerOptions,
): ChildProcess {
  const volume = { folder: options.data, path: image.volume }
  const [program, ...args] = enter({ ...image, env: { ...image.env, ...options.env }, volume }, command)
  return spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Returns the number, on this computer, of process 1 of a container. */
export function findFirstProcess({ pid = 0 }: ChildProcess): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim())
}
