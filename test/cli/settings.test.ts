import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import {
  addSettingFlags,
  toHttpSettings,
  readSettings,
  toServiceSettings,
  type Environment,
} from '../../src/cli/settings/read-settings.js'
import type { SettingValues } from '../../src/cli/settings/settings.js'
import type { CommandName } from '../../src/cli/settings/setting.js'
import { buildSettingRows } from './settings-table.js'
import { ConfigError } from '../../src/errors.js'
import { isForThisComputer } from '../../src/cli/serve/dev.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { DEFAULT_SETTINGS } from '../../src/service/context/settings.js'

function read(command: CommandName, line: string, environment: Environment = {}): SettingValues {
  const parsed = addSettingFlags(new Command(command), command).parse(line.split(' ').filter(Boolean), {
    from: 'user',
  })
  return readSettings(command, parsed.opts(), environment)
}

function faultsOf(command: CommandName, line: string, environment: Environment = {}): readonly string[] {
  try {
    read(command, line, environment)
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
  return []
}

describe('settings', () => {
  test('serve without options uses the defaults of the service and of HTTP', () => {
    const values = read('serve', '--models models')
    expect(toServiceSettings(values, false)).toEqual({ ...DEFAULT_SETTINGS, maxQueueDelayMs: 100 })
    // The program limits rates, refuses requests under overload and drains by default, unlike the library.
    const ownDefaults = { rateLimitPerMinute: 300_000, maxEventLoopDelayMs: 100, drainMs: 5_000 }
    expect(toHttpSettings(values)).toEqual({ ...DEFAULT_HTTP_SETTINGS, ...ownDefaults })
    expect(values.logLevel).toBe('info')
  })

  test('--compression is on or off, by flag or by variable', () => {
    const isOn = (line: string, environment: Environment = {}) =>
      toHttpSettings(read('demo', line, environment)).compression
    expect([isOn(''), isOn('--compression on'), isOn('--compression off')]).toEqual([true, true, false])
    expect(isOn('', { VERSO_COMPRESSION: 'off' })).toBe(false)
    expect(faultsOf('demo', '--compression gzip')).toEqual([
      '--compression must be one of on, off, not "gzip"',
    ])
  })

  test('demo differs from serve in database, log level and models, limits no load, and keeps no reserve and no drain', () => {
    const [demo, serve] = [read('demo', ''), read('serve', '--models models')]
    const names = Object.keys(demo) as (keyof SettingValues)[]
    const differing = names.filter((name) => JSON.stringify(demo[name]) !== JSON.stringify(serve[name]))
    expect(differing).toEqual([
      'db',
      'models',
      'rateLimit',
      'maxEventLoopDelay',
      'logLevel',
      'diskReserve',
      'drain',
    ])
    expect([demo.rateLimit, demo.maxEventLoopDelay, demo.drain]).toEqual([0, 0, 0])
  })

  test('dev differs from serve in log level and models, limits no load, and keeps no reserve and no drain', () => {
    const [dev, serve] = [read('dev', ''), read('serve', '--models other')]
    const names = Object.keys(dev) as (keyof SettingValues)[]
    const differing = names.filter((name) => JSON.stringify(dev[name]) !== JSON.stringify(serve[name]))
    expect(differing).toEqual([
      'models',
      'rateLimit',
      'maxEventLoopDelay',
      'logLevel',
      'diskReserve',
      'drain',
    ])
    expect([dev.models, dev.rateLimit, dev.maxEventLoopDelay, dev.drain]).toEqual(['models', 0, 0, 0])
  })

  test.each([
    ['', {}, true],
    ['--host 127.0.0.1 --db postgres://ada@localhost/verso', {}, true],
    ['--db postgres:///verso?host=/run/postgresql', {}, true],
    ['--host 0.0.0.0', {}, false],
    ['--db postgres://ada@db.example.org/verso', {}, false],
    ['--db postgres:///verso?host=db.example.org', {}, false],
    ['--public-url https://records.example.org', {}, false],
    ['--trust-proxy loopback', {}, false],
    ['', { VERSO_ADMIN_PASSWORD: 'red kite over hills' }, false],
  ])('dev %s %o creates an account with a public password: %s', (line, environment, isForThis) => {
    expect(isForThisComputer(read('dev', line, environment))).toBe(isForThis)
  })

  test('a flag wins over the environment, and VERSO_PORT wins over PORT', () => {
    const environment = { VERSO_PORT: '1001', PORT: '1002', HOST: '127.0.0.1' }
    expect(read('demo', '--port 1000', environment).port).toBe(1000)
    expect(read('demo', '', environment).port).toBe(1001)
    expect(read('demo', '', { PORT: '1002' }).port).toBe(1002)
    expect(read('demo', '', environment).host).toBe('127.0.0.1')
  })

  test('an empty variable counts as not set', () => {
    expect(read('demo', '', { VERSO_PORT: '', PORT: '1002' }).port).toBe(1002)
    expect(read('demo', '', { VERSO_PUBLIC_URL: '' }).publicUrl).toBeUndefined()
  })

  test.each([
    ['--body-limit 4096', 'bodyLimit', 4096],
    ['--body-limit 512KB', 'bodyLimit', 524_288],
    ['--session-idle-timeout 90s', 'sessionIdleTimeout', 90_000],
    ['--session-max-age 7d', 'sessionMaxAge', 604_800_000],
    ['--statement-timeout 500ms', 'statementTimeout', 500],
    ['--base-path /a/b/', 'basePath', '/a/b'],
    ['--host [::1]', 'host', '::1'],
    ['--public-url https://Records.Example.org/', 'publicUrl', 'https://records.example.org'],
    ['--trust-proxy loopback,10.0.0.0/8 --trust-proxy ::1', 'trustProxy', ['loopback', '10.0.0.0/8', '::1']],
    [
      '--allow-origin https://a.example --allow-origin https://b.example',
      'allowOrigin',
      ['https://a.example', 'https://b.example'],
    ],
    ['--unsafe-open-demo', 'unsafeOpenDemo', true],
  ] as const)('the option %s is parsed', (line, name, value) => {
    expect(read('demo', line)[name]).toEqual(value)
  })

  test('all invalid settings are reported together, each with its source and its rule', () => {
    const faults = faultsOf('serve', '--port 65536 --base-path verso --public-url https://a.example/path', {
      VERSO_SESSION_IDLE_TIMEOUT: '60',
      VERSO_TRUST_PROXY: 'loopback,nearby',
      VERSO_LOG_LEVEL: 'loud',
      VERSO_PROT: '8080',
    })
    expect(faults).toEqual([
      'VERSO_PROT is not a setting (did you mean "VERSO_PORT"?)',
      '--port must be a whole number from 0 to 65535, not "65536"',
      expect.stringMatching(/^--models is missing: .*verso init/),
      expect.stringMatching(/^--base-path must be a path such as \/verso.*, not "verso"$/),
      expect.stringMatching(/^--public-url must be .* without a path, such as .*, not/),
      expect.stringMatching(/^VERSO_TRUST_PROXY must be addresses/),
      expect.stringMatching(/^VERSO_SESSION_IDLE_TIMEOUT must be a time .*, not "60"$/),
      expect.stringMatching(/^VERSO_LOG_LEVEL must be one of fatal, error/),
    ])
  })

  test.each([
    ...[
      '--port -1',
      '--port 80.5',
      '--port 0x50',
      '--max-page-size 0',
      '--pool-size 0',
      '--body-limit 2tb',
      '--body-limit 0',
    ],
    ...['--session-idle-timeout 1.5h', '--session-idle-timeout 9999d', '--db mysql://h/d', '--db sqlite:'],
    ...[
      '--base-path /a//b',
      '--base-path /../b',
      '--base-path /a?b',
      '--allow-origin *',
      '--allow-origin https://a,,b',
    ],
    ...[
      '--trust-proxy 10.0.0.0/33',
      '--trust-proxy *',
      '--public-url ftp://a',
      '--public-url https://u:p@a',
      '--host a/b',
    ],
  ])('the option %s is rejected', (line) => {
    expect(faultsOf('demo', line)).toEqual([
      expect.stringMatching(new RegExp(`^${line.split(' ')[0] ?? ''} must be `)),
    ])
  })

  test('an error never repeats a value that may contain a password', () => {
    const faults = faultsOf('serve', '--models m --db mysql://root:hunter2@db', {
      VERSO_ADMIN_PASSWORD: 'hunter2',
    })
    expect(faults).toHaveLength(2)
    expect(faults.join()).not.toContain('hunter2')
  })

  test('sqlite::memory: is accepted by a server, and rejected by a command whose work would vanish', () => {
    for (const command of ['serve', 'dev', 'demo'] as const)
      expect(read(command, '--models m --db sqlite::memory:').db).toBe('sqlite::memory:')
    for (const command of ['user', 'export', 'verify'] as const)
      expect(faultsOf(command, `${command === 'user' ? '' : '--models m '}--db sqlite::memory:`)).toEqual([
        '--db: sqlite::memory: ends with its process: name a file or a PostgreSQL database',
      ])
  })

  test('the help of a server lists each setting under a heading, and no setting twice', () => {
    const help = addSettingFlags(new Command('serve'), 'serve').helpInformation()
    const headings = [
      'Models and data:',
      'Address and proxy:',
      'Login and access:',
      'Limits:',
      'Logs and metrics:',
    ]
    const places = headings.map((heading) => help.indexOf(`\n${heading}\n`))
    expect(places.every((place) => place > 0)).toBe(true)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    const flags = [...help.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag)
    expect(flags).toHaveLength(new Set(flags).size)
    expect(flags).toContain('--max-event-loop-delay')
  })

  test('a command ignores the variables of settings that it does not have', () => {
    expect(read('user', '--db sqlite:x.db', { VERSO_PORT: 'nonsense', PORT: 'nonsense' }).db).toBe(
      'sqlite:x.db',
    )
  })
})

test('the table of docs/operations/settings.md equals the table in the code', () => {
  const text = readFileSync(
    fileURLToPath(new URL('../../docs/operations/settings.md', import.meta.url)),
    'utf8',
  )
  const lines = text.split('\n').filter((line) => line.startsWith('|'))
  const rows = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  expect(rows[0]).toEqual(['Flag', 'Environment', 'Default', 'Meaning'])
  expect(rows.slice(2)).toEqual(buildSettingRows())
})
