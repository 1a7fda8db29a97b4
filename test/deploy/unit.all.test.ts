// The systemd unit: systemd accepts it, its exposure is low, and the service does its work under its limits.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, inject, test, vi } from 'vitest'
import { cleanUpAfterwards, PASSWORD, scratch } from '../cli/program.js'
import { readSteps, ROOT } from '../docs/page.js'
import { createDatabase } from '../postgres.js'
import { limitAsUnit, NOBODY, readDeployFile, readUnitValue, UNIT } from './unit-file.js'

cleanUpAfterwards()
vi.setConfig({ testTimeout: 300_000 })

const GUIDE = 'docs/guides/deploy.md'
const HOST = 'records.example.org'
const CONTACT = 'com.axelor.contact.db.Contact'
/** systemd rates a unit from 0 (no exposure) to 10. It calls up to 2 "OK" and from 5 "MEDIUM". */
const MAX_EXPOSURE = 2
const UNTIL_STARTED = { timeout: 60_000, interval: 100 }
const STOP_LIMIT_S = 20

test('systemd accepts the unit file', () => {
  const unit = path.join(mkdtempSync(path.join(scratch, 'unit-')), 'verso.service')
  writeFileSync(unit, readDeployFile('verso.service').replace('/usr/bin/node', process.execPath))
  // Without this flag, faults of other units of this machine count, too.
  const verified = spawnSync('systemd-analyze', ['verify', '--recursive-errors=no', unit], {
    encoding: 'utf8',
  })
  const printed = verified.stdout + verified.stderr
  expect(verified.status, printed).toBe(0)
  expect(printed.split('\n').filter((line) => line.includes('verso.service'))).toEqual([])
})

test('systemd rates the exposure of the unit as low', () => {
  const threshold = `--threshold=${MAX_EXPOSURE * 10}`
  const rated = spawnSync('systemd-analyze', ['security', '--no-pager', '--offline=true', threshold, UNIT], {
    encoding: 'utf8',
  })
  expect(rated.status, rated.stdout + rated.stderr).toBe(0)
  const [, exposure = ''] = /Overall exposure level for verso\.service: ([\d.]+)/.exec(rated.stdout) ?? []
  expect(Number(exposure)).toBeLessThanOrEqual(MAX_EXPOSURE)
})

test('the unit waits longer for the service to stop than the service takes', () => {
  expect(Number(readUnitValue('TimeoutStopSec'))).toBeGreaterThan(STOP_LIMIT_S + 5)
})

test('node does not run where memory cannot become executable, so the unit permits that', () => {
  const [program, ...args] = [...limitAsUnit({ deniesExecutableMemory: true }), process.execPath, '-e', '0']
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  expect(stderr).not.toContain('run-as-unit')
  expect(status).not.toBe(0)
  expect(readDeployFile('verso.service')).not.toMatch(/^MemoryDenyWriteExecute=/m)
})

test('the limits of the unit hold: other address families and system calls of the kernel are refused', () => {
  const program = `
import os, socket
for family in (socket.AF_NETLINK, socket.AF_PACKET):
    try: socket.socket(family, socket.SOCK_RAW); print('open')
    except OSError as error: print(error.errno)
try: os.chown('/', 0, 0); print('changed')
except OSError as error: print(error.errno)
print(os.getuid() == 0)
socket.socket(socket.AF_INET6)`
  const [limit, ...args] = [...limitAsUnit(), '/usr/bin/env', 'python3', '-c', program]
  const { stdout, stderr } = spawnSync(limit, args, { encoding: 'utf8' })
  expect(stdout, stderr).toBe('1\n1\n1\nFalse\n')
})

describe.for(['SQLite', 'PostgreSQL'])('on %s', (engine) => {
  test('the command of the unit starts, writes, and stops under its limits, with the settings of the guide', async () => {
    const folder = makeServiceFolder()
    const database =
      engine === 'SQLite' ? `sqlite:${folder}/data/verso.db` : await createDatabase(inject('postgresUrl'))
    const env = { PATH: process.env['PATH'], ...readGuideSettings(folder), VERSO_DB: database }
    const [, ...args] = readUnitValue('ExecStart').split(' ')
    const [limit, ...limits] = [...limitAsUnit(), process.execPath]
    // A busy test machine exceeds any limit on the event-loop delay.
    const test = { VERSO_PORT: '0', VERSO_ADMIN_PASSWORD: PASSWORD, VERSO_MAX_EVENT_LOOP_DELAY: '0s' }
    const options = { cwd: folder, env: { ...env, ...test } }
    const service = spawn(limit, [...limits, ...args], options)
    const exited = once(service, 'exit') as Promise<[number | null]>
    let [printed, log] = ['', '']
    service.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    service.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
    try {
      await vi.waitFor(() => expect(printed, log).toContain('listening on '), UNTIL_STARTED)
      const url = /^listening on (\S+)$/m.exec(printed)?.[1] ?? ''
      await useService(url)
      if (engine === 'SQLite') expect(statSync(`${folder}/data/verso.db`).mode & 0o777).toBe(0o600)
      service.kill('SIGTERM')
      expect((await exited)[0], log).toBe(0)
    } finally {
      service.kill('SIGKILL')
    }
  })
})

/** A folder as /srv/verso, with the data in a folder that belongs to the user of the unit. */
function makeServiceFolder(): string {
  const folder = mkdtempSync(path.join(scratch, 'srv-'))
  mkdirSync(path.join(folder, 'node_modules'))
  symlinkSync(ROOT, path.join(folder, 'node_modules/verso-records'))
  mkdirSync(path.join(folder, 'data'), { mode: 0o700 })
  if (process.getuid?.() === 0) {
    chmodSync(scratch, 0o755)
    chmodSync(folder, 0o755)
    chownSync(path.join(folder, 'data'), NOBODY, NOBODY)
  }
  return folder
}

/** The lines of the guide's settings, with the places of this test. */
function readGuideSettings(folder: string): Record<string, string> {
  const text = readSteps(GUIDE).find((each) => each.path === 'env')?.text ?? ''
  const lines = text
    .replace('/srv/verso/models', path.join(ROOT, 'examples/contacts'))
    .replace('/var/lib/verso', `${folder}/data`)
    .trim()
    .split('\n')
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]))
}

/** Hashing, reading, writing, searching in a query worker, and a file: each needs other system calls. */
async function useService(url: string): Promise<void> {
  const request = async (method: string, route: string, init: RequestInit = {}) => {
    const response = await fetch(`${url}${route}`, { ...init, method })
    expect(response.status, `${method} ${route}: ${await response.clone().text()}`).toBe(200)
    return response
  }
  const json = { 'content-type': 'application/json', host: HOST }
  const login = await request('POST', '/callback', {
    headers: json,
    body: JSON.stringify({ username: 'admin', password: PASSWORD }),
  })
  const cookie = login.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const headers = { ...json, cookie }
  const body = JSON.stringify({ data: { firstName: 'Ada', lastName: 'Lovelace' } })
  await request('PUT', `/ws/rest/${CONTACT}`, { headers, body })
  await request('GET', `/ws/rest/${CONTACT}?q=lovelace&sortBy=-email,lastName&limit=500`, { headers })
  const form = new FormData()
  form.set('file', new Blob([Buffer.alloc(2_000_000)]), 'large.bin')
  form.set('field', 'content')
  form.set('request', JSON.stringify({ data: { fileName: 'large.bin' } }))
  await request('POST', '/ws/rest/com.axelor.meta.db.MetaFile/upload', { headers: { cookie }, body: form })
}
