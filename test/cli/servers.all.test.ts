import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { cleanUpAfterwards, newDatabase, PASSWORD, scratch, start, verso } from './program.js'

cleanUpAfterwards()

/** The curl commands of a text, including continuation lines. */
function curlCommands(text: string): string[] {
  return text.match(/^ *curl(?:.*\\\n)*.*$/gm) ?? []
}

async function sh(command: string, cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('sh', ['-c', command], { cwd }, (error, stdout) => {
      if (error) reject(new Error(`${command} failed`, { cause: error }))
      else resolve(stdout)
    })
  })
}

/** The account that the service shows to clients that are not logged in. */
async function readOfferedAccount(url: string): Promise<unknown> {
  const response = await fetch(`${url.replace('0.0.0.0', '127.0.0.1')}/ws/public/app/info`)
  const { authentication } = (await response.json()) as { authentication: { demo?: unknown } }
  return authentication.demo
}

describe('verso demo', () => {
  test.each([[[]], [['--base-path', '/records', '--host', '127.0.0.1']]])(
    'demo prints commands that work when pasted, the last one shows a conflict, with options %o',
    async (more) => {
      const { child, stdout, url, ended } = await start([
        'demo',
        '--port',
        '0',
        '--db',
        newDatabase(),
        ...more,
      ])
      for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
      const answers: unknown[] = []
      for (const command of curlCommands(stdout)) answers.push(JSON.parse(await sh(command, scratch)))
      expect(answers).toEqual([
        { status: 0, data: [expect.objectContaining({ username: 'admin' })] },
        expect.objectContaining({ status: 0, offset: 0, total: 12 }),
        { status: 0, data: [expect.objectContaining({ id: 1, version: 1 })] },
        { status: -1, data: expect.objectContaining({ kind: 'conflict', expected: 0, current: 1 }) },
      ])
      expect(stdout).toContain(`${url}/callback`)
      expect(stdout.split('\n').slice(0, 4)).toEqual([
        `listening on ${url}`,
        '',
        `  Open     ${url} in a browser`,
        '  Account  admin / admin',
      ])
      expect(await readOfferedAccount(url)).toEqual({ username: 'admin', password: 'admin' })
      child.kill('SIGTERM')
      expect(await ended()).toBe(0)
    },
  )

  test('a restarted demo prints the current version of the record, and creates no duplicate contacts', async () => {
    const args = ['demo', '--port', '0', '--db', newDatabase()]
    const first = await start(args)
    for (const command of curlCommands(first.stdout)) await sh(command, scratch)
    first.child.kill('SIGINT')
    expect(await first.ended()).toBe(0)
    const second = await start([...args, '--sample', '20'])
    const [login = '', list = '', update = ''] = curlCommands(second.stdout)
    expect(update).toContain('"version":1')
    await sh(login, scratch)
    expect(JSON.parse(await sh(list, scratch))).toMatchObject({ total: 20 })
    expect(JSON.parse(await sh(update, scratch))).toMatchObject({ status: 0, data: [{ version: 2 }] })
  })

  test('demo refuses a public address until its password is changed, or with --unsafe-open-demo', async () => {
    const db = newDatabase()
    const open = ['demo', '--port', '0', '--host', '0.0.0.0', '--db', db]
    const rejected = await verso(open)
    expect(rejected).toMatchObject({ code: 1, stdout: '' })
    expect(rejected.stderr).toContain('--unsafe-open-demo')
    expect(rejected.stderr).not.toContain('\n    at ')
    const served = await verso([
      'serve',
      ...open.slice(1),
      '--models',
      fileURLToPath(new URL('../../examples/contacts', import.meta.url)),
    ])
    expect(served.code).toBe(1)
    expect(served.stderr).toContain('password of the demo')

    const unsafe = await start([...open, '--unsafe-open-demo'])
    expect(await readOfferedAccount(unsafe.url)).toBeUndefined()
    unsafe.child.kill('SIGTERM')
    await unsafe.ended()

    expect(
      await verso(['user', 'passwd', 'admin', '--db', db, '--password-stdin'], `${PASSWORD}\n`),
    ).toMatchObject({ code: 0 })
    expect((await start(open)).url).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/)
  })
})

test('only verso demo shows the account of the demo, until its password is changed', async () => {
  const db = newDatabase()
  const demo = await start(['demo', '--port', '0', '--db', db])
  expect(await readOfferedAccount(demo.url)).toEqual({ username: 'admin', password: 'admin' })
  const models = ['--models', fileURLToPath(new URL('../../examples/contacts', import.meta.url))]
  for (const command of ['serve', 'dev']) {
    const other = await start([command, '--port', '0', '--db', db, ...models])
    expect(await readOfferedAccount(other.url), command).toBeUndefined()
    other.child.kill('SIGTERM')
    await other.ended()
  }
  const changed = await verso(['user', 'passwd', 'admin', '--db', db, '--password-stdin'], `${PASSWORD}\n`)
  expect(changed).toMatchObject({ code: 0 })
  expect(await readOfferedAccount(demo.url)).toBeUndefined()
})

describe('verso serve', () => {
  const contacts = [
    '--models',
    fileURLToPath(new URL('../../examples/contacts', import.meta.url)),
    '--port',
    '0',
  ]

  test('serve without models says how to get some', async () => {
    const { code, stderr } = await verso(['serve'])
    expect(code).toBe(1)
    expect(stderr).toContain('verso init')
  })

  test('serve prints a link to create the first administrator', async () => {
    const { stdout, url, log } = await start(['serve', ...contacts, '--db', newDatabase()])
    const link = /^ *(http\S+\/setup\?token=([\w-]{43}))$/m.exec(stdout)
    const made = await fetch(link?.[1] ?? '', {
      method: 'POST',
      body: new URLSearchParams({ username: 'ada', password: PASSWORD }),
    })
    expect(made.status).toBe(200)
    expect(await login(url, 'ada', PASSWORD)).toBe(200)
    expect(log()).not.toContain(link?.[2])
  })

  test('serve creates the first administrator from the environment, and prints no link', async () => {
    const { stdout, url, log } = await start(['serve', ...contacts, '--db', newDatabase()], {
      VERSO_ADMIN_PASSWORD: PASSWORD,
    })
    expect(stdout).not.toContain('setup')
    expect(await login(url, 'admin', PASSWORD)).toBe(200)
    expect(log()).not.toContain(PASSWORD)
  })

  test('serve prints the link until an administrator can log in; the link restores an existing account', async () => {
    const db = newDatabase()
    await verso(['user', 'add', 'ada', '--password-stdin', '--db', db], `${PASSWORD} of yesterday`)
    await verso(['user', 'disable', 'ada', '--db', db])
    const { stdout, url } = await start(['serve', ...contacts, '--db', db])
    const link = /^ *(http\S+\/setup\?token=[\w-]{43})$/m.exec(stdout)?.[1] ?? ''
    const body = () => new URLSearchParams({ username: 'ada', password: PASSWORD })
    expect((await fetch(link, { method: 'POST', body: body() })).status).toBe(200)
    expect(await login(url, 'ada', PASSWORD)).toBe(200)
    expect((await fetch(link, { method: 'POST', body: body() })).status).toBe(404)
    expect((await verso(['user', 'list', '--db', db])).stdout).toMatch(/ada +ada +administrator +enabled/)
  })

  test('serve finishes requests in flight on SIGTERM, then exits with 0', async () => {
    const { child, url, ended } = await start(['serve', ...contacts, '--db', newDatabase()])
    const request = slowLogin(url)
    await request.isUnderWay
    child.kill('SIGTERM')
    await untilRejected(url)
    expect(await request.finish()).toMatch(/^HTTP\/1\.1 401 /)
    expect(await ended()).toBe(0)
  })

  test('serve exits with 1 immediately on a second signal', async () => {
    const { child, url, ended } = await start(['serve', ...contacts, '--db', newDatabase()])
    await slowLogin(url).isUnderWay
    child.kill('SIGTERM')
    await untilRejected(url)
    const again = setInterval(() => child.kill('SIGTERM'), 100)
    expect(await ended()).toBe(1)
    clearInterval(again)
  })

  test('serve reports a port in use without a stack trace', async () => {
    const { url } = await start(['serve', ...contacts, '--host', '127.0.0.1', '--db', newDatabase()])
    const port = new URL(url).port
    const { code, stderr } = await verso([
      'serve',
      ...contacts.slice(0, 2),
      '--host',
      '127.0.0.1',
      '--port',
      port,
      '--db',
      newDatabase(),
    ])
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`127.0.0.1, port ${port}: another program uses this port`),
    ])
  })

  test('serve applies no migration if its port is in use', async () => {
    const db = newDatabase()
    const { url } = await start(['serve', ...contacts, '--host', '127.0.0.1', '--db', db])
    const library = fileURLToPath(new URL('../../examples/domain-xml', import.meta.url))
    const flags = ['--host', '127.0.0.1', '--port', new URL(url).port, '--db', db]
    const { code } = await verso(['serve', '--models', library, ...flags])
    expect([code, (await fetch(`${url}/readyz`)).status]).toEqual([1, 200])
    const { stdout } = await verso(['schema', '--models', library, '--db', db])
    expect(stdout).toContain('+ org.example.library.db.Book: new table')
  })

  async function login(url: string, username: string, password: string): Promise<number> {
    const { status } = await fetch(`${url}/callback`, {
      method: 'POST',
      body: JSON.stringify({ username, password }),
    })
    return status
  }

  /** A request whose last byte is not sent yet. */
  function slowLogin(url: string) {
    const body = '{"username":"nobody","password":"nothing"}'
    const socket = connect(Number(new URL(url).port), 'localhost')
    socket.on('error', () => undefined)
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString()))
    // The server answers 100 once it has the head of the request.
    const head = [
      'POST /callback HTTP/1.1',
      'Host: localhost',
      'Expect: 100-continue',
      `Content-Length: ${body.length}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    return {
      isUnderWay: once(socket, 'data').then(() => {
        answer = ''
        socket.write(body.slice(0, -1))
      }),
      finish: async () => {
        socket.write(body.slice(-1))
        await once(socket, 'close')
        return answer
      },
    }
  }

  async function untilRejected(url: string): Promise<void> {
    for (;;) {
      try {
        await fetch(`${url}/healthz`, { headers: { connection: 'close' } })
      } catch {
        return
      }
    }
  }
})
