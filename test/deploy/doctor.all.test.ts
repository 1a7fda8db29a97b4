// `verso doctor --url` in front of proxies with right and with wrong configurations.
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { cleanUpAfterwards, newDatabase, PASSWORD, start, verso } from '../cli/program.js'
import { ROOT } from '../docs/page.js'
import { findFreePort } from '../docs/reader.js'
import { startHaproxy, startNginx, stopProxiesAfterwards } from './proxies.js'

cleanUpAfterwards()
stopProxiesAfterwards()
vi.setConfig({ testTimeout: 300_000 })

const CONTACTS = path.join(ROOT, 'examples/contacts')

interface Fault {
  readonly name: string
  readonly proxy?: 'nginx' | 'HAProxy'
  readonly damage?: (text: string) => string
  /** Settings of the service. */
  readonly settings?: Record<string, string>
  readonly user?: string
  /** Lines that are not ok. */
  readonly expected: readonly string[]
}

const HTTP_1 = 'warning http version'
const WITHOUT_HOST = { VERSO_PUBLIC_URL: '', VERSO_HOST: '0.0.0.0' }

const FAULTS: readonly Fault[] = [
  { name: 'HAProxy as in the folder deploy', proxy: 'HAProxy', expected: [] },
  {
    name: 'HAProxy without HTTP/2',
    proxy: 'HAProxy',
    damage: (text) => text.replace('alpn h2,http/1.1', 'alpn http/1.1'),
    expected: [HTTP_1],
  },
  { name: 'nginx as in the folder deploy', expected: [HTTP_1] },
  {
    name: 'nginx without X-Forwarded-Proto',
    damage: (text) => text.replace(/^.*X-Forwarded-Proto.*\n/m, ''),
    expected: ['problem cookies', HTTP_1],
  },
  {
    name: 'a service that trusts no proxy',
    settings: { VERSO_TRUST_PROXY: '' },
    expected: ['problem cookies', HTTP_1, 'problem client address'],
  },
  {
    name: 'nginx with another host, and a service without a public URL',
    damage: (text) =>
      text.replace(/ Host \$host/, ' Host other.example.org').replace(/^.*X-Forwarded-Host.*\n/m, ''),
    settings: WITHOUT_HOST,
    expected: ['problem host', HTTP_1],
  },
  {
    name: 'nginx with its default body limit',
    damage: (text) => text.replace(/^.*client_max_body_size.*\n/m, ''),
    expected: ['problem body limit', HTTP_1],
  },
  {
    name: 'nginx that passes on X-Forwarded-For of the client',
    damage: (text) => text.replace(/^.*X-Forwarded-For.*\n/m, ''),
    expected: [HTTP_1, 'problem client address'],
  },
  {
    name: 'nginx that buffers event streams',
    damage: (text) => text.replace('proxy_buffering off;', 'proxy_ignore_headers X-Accel-Buffering;'),
    expected: [HTTP_1, 'problem event stream'],
  },
  { name: 'a wrong user', user: 'nobody', expected: [HTTP_1, 'problem login'] },
]

test.for(FAULTS)(
  'reports $name',
  async ({ proxy = 'nginx', damage = (text) => text, settings = {}, user = 'admin', expected }) => {
    const port = await findFreePort()
    const url = `https://127.0.0.1:${port}`
    const variables = {
      VERSO_PUBLIC_URL: url,
      VERSO_TRUST_PROXY: 'loopback',
      VERSO_DB: newDatabase(),
      ...settings,
    }
    const service = await start(['serve', '--models', CONTACTS, '--port', '0'], {
      ...variables,
      VERSO_ADMIN_PASSWORD: PASSWORD,
    })
    const node = `127.0.0.1:${new URL(service.url).port}`
    const certificate =
      proxy === 'nginx'
        ? await startNginx(port, (text) => damage(text).replace('127.0.0.1:8080', node))
        : await startHaproxy(port, (text) =>
            damage(text)
              .replace(/^ +server node2 .*\n/m, '')
              .replace('10.0.0.5:8080', node)
              .replace('hdr Host records.example.org', `hdr Host 127.0.0.1:${port}`),
          )
    const flags = ['--models', CONTACTS, '--url', url, '--user', user, '--json']
    const { code, stdout, stderr } = await verso(['doctor', ...flags], '', {
      ...variables,
      VERSO_DOCTOR_PASSWORD: PASSWORD,
      NODE_EXTRA_CA_CERTS: certificate,
    })
    expect(stderr).toBe('')
    const { checks } = JSON.parse(stdout) as {
      readonly checks: readonly { readonly check: string; readonly level: string }[]
    }
    const begin = checks.findIndex(({ check }) => check === 'service')
    const faults = checks.slice(begin).filter(({ level }) => level !== 'ok')
    expect(
      faults.map(({ check, level }) => `${level} ${check}`),
      stdout,
    ).toEqual(expected)
    expect(code).toBe(expected.some((line) => line.startsWith('problem')) ? 1 : 0)
  },
)

test('reports a certificate that is not trusted, and a service that is not there', async () => {
  const port = await findFreePort()
  const service = await start(['serve', '--models', CONTACTS, '--port', '0', '--db', newDatabase()], {
    VERSO_PUBLIC_URL: `https://127.0.0.1:${port}`,
  })
  await startNginx(port, (text) => text.replace('127.0.0.1:8080', `127.0.0.1:${new URL(service.url).port}`))
  const flags = ['--models', CONTACTS, '--db', newDatabase(), '--url']
  const untrusted = await verso(['doctor', ...flags, `https://127.0.0.1:${port}`])
  expect(untrusted.stdout).toMatch(/^problem {2}service: .*\n +→ Renew the certificate/m)
  const missing = await verso(['doctor', ...flags, `http://127.0.0.1:1`])
  expect(missing.stdout).toMatch(/^problem {2}service: .* cannot be reached: .*ECONNREFUSED/m)
})
