// The container: its steps run in a chroot, and the service does its work there as an unprivileged user on a read-only root file system.
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { cleanUpAfterwards, MAIN, PASSWORD, scratch } from '../cli/program.js'
import { findFreePort } from '../docs/reader.js'
import { findTarball, installPackage } from '../package/installed.js'
import { findInstalledClients } from '../postgres-binaries.js'
import { createDatabase } from '../postgres.js'
import { parseContainerFile, parseIgnoreFile } from './container-file.js'
import {
  buildImage,
  findFirstProcess,
  makeBuildFolder,
  requireChroot,
  startInContainer,
  type Image,
} from './container.js'
import { DEPLOY, readDeployFile } from './unit-file.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 })

const UNTIL_STARTED = { timeout: 60_000, interval: 100 }
const STOP_LIMIT_S = 20
const LONG_DRAIN_S = 5

describe('the reader of container files', () => {
  test.for([
    'FROM node:22-bookworm-slim\nADD . .',
    'FROM node:22-bookworm-slim\nUSER root',
    'FROM node:22-bookworm-slim\nCOPY --chown=node . .',
    'FROM node:22-bookworm-slim\nENTRYPOINT node main.js',
    'RUN true',
  ])('rejects what it does not know: %s', (text) => {
    expect(() => parseContainerFile(text)).toThrow()
  })

  test('permits only the exceptions of an ignore file', () => {
    const isPermitted = parseIgnoreFile(readDeployFile('Dockerfile.dockerignore'))
    const names = [
      'models',
      'package.json',
      'verso-records-0.1.0.tgz',
      '.env',
      'data',
      'node_modules',
      'deploy',
    ]
    expect(names.filter(isPermitted)).toEqual(['models', 'package.json', 'verso-records-0.1.0.tgz'])
  })
})

describe('the container', () => {
  let image: Image
  beforeAll(async () => {
    requireChroot()
    const folder = makeBuildFolder()
    image = buildImage(await makeProject(), folder)
    return () => {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('has the package and the models, and neither passwords, nor data, nor build tools, nor a package manager', () => {
    const find = (name: string) => existsSync(path.join(image.root, image.workdir, name))
    expect(['models', 'package.json', 'node_modules/verso-records'].filter(find)).toHaveLength(3)
    expect(['.env', 'data', 'deploy'].filter(find)).toEqual([])
    const tools = ['gcc', 'cc', 'make', 'python3', 'npm', 'npx', 'git', 'curl']
    const folders = (image.env['PATH'] ?? '').split(':')
    const found = tools.filter((tool) =>
      folders.some((each) => existsSync(path.join(image.root, each, tool))),
    )
    expect(found).toEqual([])
    expect(image.env['NODE_ENV']).toBe('production')
    expect(image.user).toEqual({ uid: 1000, gid: 1000 })
  })

  test('on a read-only root file system the service stores records, and SIGTERM ends it with 0', async () => {
    const data = makeVolume()
    const first = await startService(data)
    const status = readFileSync(`/proc/${findFirstProcess(first.child)}/status`, 'utf8')
    expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m)
    expect(status).toMatch(/^CapEff:\t0+$/m)
    expect(status).toMatch(/^NSpid:\t\d+\t1$/m)
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
    expect(await runHealthcheck(data, first.port)).toBe(0)
    const cookie = await logIn(first.url)
    await request(first.url, 'PUT', {
      cookie,
      body: JSON.stringify({ data: { code: 'remember', name: 'Remember' } }),
    })
    await uploadFile(first.url, cookie)
    expect(await first.stop(), first.log()).toBe(0)
    expect(await runHealthcheck(data, first.port)).toBe(1)

    const second = await startService(data)
    const found = await request(second.url, 'GET', { cookie })
    expect(await found.text()).toContain('remember')
    expect(await second.stop(), second.log()).toBe(0)
  })

  test('nothing but the volume and /tmp can be written', async () => {
    const script =
      'for folder in /srv/verso /usr/local/bin /home/node /data /tmp; do touch $folder/file 2>/dev/null && echo $folder; done; true'
    const child = startInContainer(image, ['/bin/sh', '-c', script], { data: makeVolume() })
    let printed = ''
    child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await once(child, 'close')
    expect(printed).toBe('/data\n/tmp\n')
  })

  test('the commands of the program run in the container', async () => {
    const child = startInContainer(image, ['verso', '--version'], { data: makeVolume() })
    let printed = ''
    child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await once(child, 'close')
    expect(printed).toBe(execFileSync(process.execPath, [MAIN, '--version'], { encoding: 'utf8' }))
  })

  test('with the settings of compose.yaml it keeps its records in PostgreSQL', async () => {
    const { environment } = readCompose('secret').services.verso
    const url = new URL(await createDatabase(inject('postgresUrl')))
    expect(environment['VERSO_DB']).toBe('postgres://verso:secret@db/verso')
    const service = await startService(makeVolume(), { ...environment, VERSO_DB: url.href })
    const headers = { host: 'records.example.org', 'x-forwarded-proto': 'https' }
    expect((await fetch(`${service.url}/readyz`, { headers })).status).toBe(200)
    expect(await service.stop(), service.log()).toBe(0)
  })

  async function startService(data: string, env: Readonly<Record<string, string>> = {}) {
    const port = await findFreePort()
    const settings = {
      VERSO_ADMIN_PASSWORD: PASSWORD,
      VERSO_MAX_EVENT_LOOP_DELAY: '0s',
      VERSO_PORT: String(port),
      ...env,
    }
    const child = startInContainer(image, [...image.entrypoint, ...image.cmd], { data, env: settings })
    const exited = once(child, 'exit') as Promise<[number | null]>
    let [printed, log] = ['', '']
    child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    child.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
    await vi.waitFor(() => expect(printed, log).toContain('listening on '), UNTIL_STARTED)
    const stop = async () => {
      process.kill(findFirstProcess(child), 'SIGTERM')
      return (await exited)[0]
    }
    return { child, port, url: `http://127.0.0.1:${port}`, log: () => log, stop }
  }

  async function runHealthcheck(data: string, port: number): Promise<number | null> {
    const child = startInContainer(image, image.healthcheck, { data, env: { VERSO_PORT: String(port) } })
    const [code] = (await once(child, 'exit')) as [number | null]
    return code
  }

  function makeVolume(): string {
    const data = mkdtempSync(path.join(scratch, 'volume-'))
    chownSync(data, image.user.uid, image.user.gid)
    return data
  }
})

interface ComposeService {
  readonly environment: Readonly<Record<string, string>>
  readonly stop_grace_period: string
  readonly restart: string
  readonly read_only?: boolean
  readonly ports?: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
}

describe('compose.yaml', () => {
  test('has no passwords, and says that one is missing', () => {
    expect(() => readCompose('')).toThrow('set it in deploy/.env')
    expect(readDeployFile('compose.yaml')).not.toMatch(/password: (?!\$\{)/i)
  })

  test('starts again after failures, and stops later than the service needs', () => {
    const { verso, db } = readCompose('secret').services
    expect([verso.restart, db.restart]).toEqual(['unless-stopped', 'unless-stopped'])
    expect(Number.parseInt(verso.stop_grace_period)).toBeGreaterThan(STOP_LIMIT_S + LONG_DRAIN_S)
    expect(verso).toMatchObject({ read_only: true, ports: ['127.0.0.1:8080:8080/tcp'] })
  })

  test('its health check of PostgreSQL succeeds with a server, and fails without one', () => {
    const [, program = '', ...args] = readCompose('secret').services.db.healthcheck?.test ?? []
    const check = (port: string) =>
      spawnSync(path.join(findInstalledClients(), program), args, { env: { PGPORT: port } }).status
    expect(check(new URL(inject('postgresUrl')).port)).toBe(0)
    expect(check('1')).toBe(2)
  })
})

/** Reads the file as Compose does, with a password for the database. */
function readCompose(password: string) {
  const file = path.join(DEPLOY, 'compose.yaml')
  const env = { PATH: process.env['PATH'], DB_PASSWORD: password }
  const { status, stdout, stderr } = spawnSync('docker-compose', ['-f', file, 'config'], {
    env,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
  // Compose prints YAML. The package docker-compose needs Debian's Python with its YAML reader.
  const toJson = 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))'
  const json = execFileSync('/usr/bin/python3', ['-c', toJson], { input: stdout, encoding: 'utf8' })
  return JSON.parse(json) as {
    readonly services: { readonly verso: ComposeService; readonly db: ComposeService }
  }
}

/** A project as the guide makes it, with the package as a file, and with files that must stay outside of the container. */
async function makeProject(): Promise<string> {
  const project = mkdtempSync(path.join(scratch, 'project-'))
  const tarball = await findTarball()
  copyFileSync(tarball, path.join(project, path.basename(tarball)))
  const { status, printed } = installPackage(project, `./${path.basename(tarball)}`, process.execPath)
  if (status !== 0) throw new Error(printed)
  execFileSync(process.execPath, [MAIN, 'init', 'models'], { cwd: project })
  cpSync(DEPLOY, path.join(project, 'deploy'), { recursive: true })
  writeFileSync(path.join(project, '.env'), 'VERSO_ADMIN_PASSWORD=do not copy this\n')
  mkdirSync(path.join(project, 'data'))
  return project
}

async function request(
  url: string,
  method: string,
  init: { readonly cookie: string; readonly body?: string },
) {
  const headers = { cookie: init.cookie, 'content-type': 'application/json' }
  const response = await fetch(`${url}/ws/rest/todo.Tag`, {
    method,
    headers,
    ...(init.body ? { body: init.body } : {}),
  })
  expect(response.status, await response.clone().text()).toBe(200)
  return response
}

async function logIn(url: string): Promise<string> {
  const body = JSON.stringify({ username: 'admin', password: PASSWORD })
  const response = await fetch(`${url}/callback`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  expect(response.status, await response.clone().text()).toBe(200)
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

async function uploadFile(url: string, cookie: string): Promise<void> {
  const form = new FormData()
  form.set('file', new Blob([Buffer.alloc(2_000_000)]), 'large.bin')
  form.set('field', 'content')
  form.set('request', JSON.stringify({ data: { fileName: 'large.bin' } }))
  const route = `${url}/ws/rest/com.axelor.meta.db.MetaFile/upload`
  const response = await fetch(route, { method: 'POST', headers: { cookie }, body: form })
  expect(response.status, await response.clone().text()).toBe(200)
}
