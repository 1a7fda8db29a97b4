// The commands in the documents work when a reader pastes them, one after the other, into a shell beside a fresh demo.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { HttpClient } from '../http-client.js'
import { cleanUpAfterwards, MAIN, newDatabase, scratch, start } from './program.js'

cleanUpAfterwards()

interface Body {
  readonly status: number
  readonly data: readonly Record<string, unknown>[] & Readonly<Record<string, unknown>>
}

/** The output of each command. Variables set by one block exist in the next, as in a shell that stays open. */
async function paste(
  document: string,
  flags: readonly string[] = [],
  base = 'http://localhost:8080',
): Promise<Body[]> {
  const { url } = await start(['demo', '--port', '0', '--db', newDatabase(), ...flags])
  const text = readFileSync(new URL(`../../${document}`, import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(curl.*?)^```$/gms)].map(([, block = '']) => block)
  const script = blocks
    // A stream never ends.
    .filter((block) => !block.startsWith('curl -sN') && (!block.includes('http://') || block.includes(base)))
    .map((block) => `${block}\necho\n`)
    .join('')
    .replaceAll(base, url)
  const cwd = mkdtempSync(path.join(scratch, 'docs-'))
  const printed = execFileSync('sh', ['-e', '-c', script], { cwd, encoding: 'utf8' })
  return printed.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Body]))
}

test('the commands of docs/reference/filters.md work', async () => {
  const answers = await paste('docs/reference/filters.md')
  expect(answers).toHaveLength(6)
  for (const { status, data } of answers) {
    expect(status).toBe(0)
    expect(data.length).toBeGreaterThan(0)
  }
})

test('the commands of README.md work: a tour with a resolved conflict, a search, and a user with one role', async () => {
  const answers = await paste('README.md')
  expect(answers.map(({ status }) => status)).toEqual([0, 0, 0, -1, 0, 0, ...[0, 0, 0, 0, -1, 0, 0]])
  expect(answers[1]?.data).toMatchObject([{ id: 13, version: 0 }])
  expect(answers[3]?.data).toMatchObject({
    kind: 'conflict',
    mergeable: true,
    current: 1,
    fields: { lastName: { verdict: 'theirs' }, phone: { verdict: 'ours' } },
  })
  expect(answers[4]?.data).toMatchObject([{ version: 2, lastName: 'Lovelace', phone: '555-0100' }])
  expect(answers[5]?.data).toMatchObject([{ 'company.name': 'Nordlicht Optik' }])
  const [role, user, bob, foreign, rejected, own, changed] = answers.slice(6).map(({ data }) => data)
  expect(role).toMatchObject([{ id: 4, name: 'assistant' }])
  expect(role?.[0]?.['permissions']).toHaveLength(2)
  expect([user, bob]).toMatchObject([
    [{ username: 'bob', roles: [{ id: 4 }] }],
    [{ username: 'bob', roles: ['assistant'] }],
  ])
  const shown = ['id', 'version', 'fullName', 'firstName', 'lastName', 'email', 'phone']
  expect(Object.keys(foreign?.[0] ?? {}).sort()).toEqual(shown.sort())
  expect(rejected).toMatchObject({ kind: 'forbidden' })
  expect([own, changed]).toMatchObject([
    [{ id: 14, version: 0 }],
    [{ id: 14, version: 1, fullName: 'Grace Hopper' }],
  ])
})

test('the commands of docs/reference/api-keys.md create, use, list and revoke a key', async () => {
  const answers = await paste('docs/reference/api-keys.md')
  expect(answers.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0, 0, -1])
  expect(answers.map(({ data }) => data).slice(1)).toMatchObject([
    [
      {
        id: 1,
        version: 0,
        name: 'nightly backup',
        roles: ['administrator'],
        key: expect.stringMatching(/^vk_/),
      },
    ],
    [{ id: 1 }, { id: 2 }],
    [{ firstName: 'Ada', createdBy: { name: 'Administrator' } }],
    [{ id: 1, name: 'nightly backup' }],
    [1],
    { kind: 'unauthenticated' },
  ])
})

test('the commands of docs/operations/commands.md work, and print what the document shows', async () => {
  const cwd = mkdtempSync(path.join(scratch, 'docs-'))
  const { url } = await start(['demo', '--port', '0', '--db', `sqlite:${path.join(cwd, 'data/demo.db')}`])
  const text = readFileSync(new URL('../../docs/operations/commands.md', import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const program = `verso() { '${process.execPath}' '${MAIN}' "$@"; }\n`
  const script = `${program}${blocks.join('')}`
    .replaceAll('npm run -s verso --', 'verso')
    .replaceAll('http://localhost:8080', url)
    .replaceAll('examples/contacts', fileURLToPath(new URL('../../examples/contacts', import.meta.url)))
  const printed = execFileSync('sh', ['-e', '-c', script], { cwd, encoding: 'utf8' })
  const shown = /^```\n(helper: .*?)^```$/ms.exec(text)?.[1] ?? 'nothing is shown'
  expect(printed).toContain(shown)
  expect(printed).toMatch(/"total":12,/)
  expect(printed).toContain('key 1 is over')
  expect(printed).toMatch(/VERSION +ACTION +WHEN +WHO +WHAT\n0 +create /)
  expect(printed).toContain('what 1 Change told of com.axelor.contact.db.Contact 1 was removed')
})

test('the commands of README.md for existing models and clients work', async () => {
  const library = fileURLToPath(new URL('../../examples/domain-xml', import.meta.url))
  const flags = ['--models', library, '--compat', 'axelor']
  const [models, book] = await paste('README.md', flags, 'http://localhost:8082')
  expect(models?.data).toContainEqual(expect.objectContaining({ fullName: 'org.example.library.db.Loan' }))
  expect(book?.data).toMatchObject([{ title: 'Notes on the Engine', authors: [{ name: 'Ada Lovelace' }] }])
})

test('the commands of docs/reference/axelor.md work', async () => {
  const [models, made, rejected] = await paste('docs/reference/axelor.md', ['--compat', 'axelor'])
  expect(models?.data).toContainEqual(expect.objectContaining({ fullName: 'com.axelor.contact.db.Contact' }))
  expect(made?.data).toMatchObject([{ firstName: 'Ada', company: { id: 1, name: 'Nordlicht Optik' } }])
  expect(rejected).toMatchObject({ status: -1, data: { kind: 'bad-request' } })
})

test('the commands of docs/reference/domain-xml.md lend a book and find its loan', async () => {
  const library = fileURLToPath(new URL('../../examples/domain-xml', import.meta.url))
  const answers = await paste('docs/reference/domain-xml.md', ['--models', library], 'http://localhost:8082')
  expect(answers.map(({ status }) => status)).toEqual([0, 0, 0, 0])
  expect(answers[1]?.data).toMatchObject([
    { title: 'Notes on the Engine', stateSelect: 1, binding: 'PAPERBACK' },
  ])
  expect(answers[3]?.data).toMatchObject([
    { number: 'L00001', 'member.fullName': 'Mary Somerville', 'book.title': 'Notes on the Engine' },
  ])
})

test('docs/reference/domain-xml.md shows the exact output of its models commands', async () => {
  const text = readFileSync(new URL('../../docs/reference/domain-xml.md', import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```\n\$ npm run verso -- (models .*)\n([^`]*)^```$/gm)]
  expect(blocks).toHaveLength(2)
  for (const [, command = '', printed = ''] of blocks) {
    const cwd = fileURLToPath(new URL('../..', import.meta.url))
    const out = mkdtempSync(path.join(scratch, 'docs-'))
    const args = command.replace('--out converted', `--out ${out}`).split(' ')
    const said = execFileSync(process.execPath, ['dist/cli/main.js', ...args], { cwd, encoding: 'utf8' })
    expect(said.replace(out, 'converted')).toBe(printed)
  }
})

test('the commands of docs/reference/files.md upload, replace, download and clear a file', async () => {
  const answers = await paste('docs/reference/files.md')
  expect(answers.map(({ data }) => data[0])).toMatchObject([
    { username: 'admin' },
    { id: 1, version: 0, fileName: 'notes.txt', fileSize: 5 },
    { id: 1, version: 1, fileSize: 11, description: 'the second try' },
    { id: 1, version: 2, fileType: null, fileSize: null },
  ])
})

test('the commands and the sample receiver of docs/reference/webhooks.md work', async () => {
  const answers = await paste('docs/reference/webhooks.md')
  expect(answers.map(({ status }) => status)).toEqual([0, 0])
  const { url } = await start(['demo', '--port', '0', '--db', newDatabase(), '--webhook-allow', '127.0.0.1'])
  const admin = await HttpClient.login(url, 'admin', 'admin')
  const port = await freePort()
  const made = await admin.request('POST', '/ws/webhooks', {
    data: { name: 'pasted', url: `http://127.0.0.1:${port}/` },
  })
  const { data: [webhook] } = (await made.json()) as { data: [{ secret: string }] } // prettier-ignore
  const text = readFileSync(new URL('../../docs/reference/webhooks.md', import.meta.url), 'utf8')
  const file = path.join(mkdtempSync(path.join(scratch, 'docs-')), 'receiver.mjs')
  writeFileSync(file, /^```js\n(.*?)^```$/ms.exec(text)?.[1] ?? '')
  const env = { ...process.env, PORT: String(port), WEBHOOK_SECRET: webhook.secret }
  const receiver = spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let printed = ''
    receiver.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    const { data } = await admin.create('com.axelor.contact.db.Contact', { firstName: 'Ada' })
    const line = new RegExp(`^\\d+ create com\\.axelor\\.contact\\.db\\.Contact ${data.id} 0$`, 'm')
    await expect.poll(() => printed, { timeout: 50_000 }).toMatch(line)
    const forged = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{"data":[]}' })
    expect(forged.status).toBe(401)
  } finally {
    receiver.kill()
  }
})

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

test('the commands of docs/guides/conflicts.md show an edit, a conflict, a merge, a history and the change feed', async () => {
  const answers = await paste('docs/guides/conflicts.md')
  const rejected = [5, 8]
  expect(answers.map(({ status }) => status)).toEqual(
    answers.map((_, index) => (rejected.includes(index) ? -1 : 0)),
  )
  const data = answers.map((answer) => answer.data)
  expect(data.slice(2, 5)).toMatchObject([
    [{ id: 13, version: 0 }],
    [{ id: 13, version: 0 }],
    [{ version: 1 }],
  ])
  expect(data[5]).toMatchObject({
    ...{ kind: 'conflict', current: 1, mergeable: false },
    fields: {
      phone: { base: '555-0100', ours: '555-0199', theirs: '555-0101', verdict: 'clash' },
      email: { verdict: 'ours' },
    },
  })
  const merged = { email: 'm.somerville@example.org', notes: 'prefers letters', phone: '555-0101' }
  expect(data.slice(6, 8)).toMatchObject([[{ version: 2 }], [{ version: 3, ...merged }]])
  expect(data[8]).toMatchObject({ kind: 'conflict', fields: { email: { verdict: 'clash' } } })
  expect(data[9]).toMatchObject([{ version: 4, dateOfBirth: '1780-12-26', ...merged }])
  expect(data[10]).toMatchObject([{ version: 4 }, { version: 3 }, { version: 2 }])
  const first = { phone: '555-0100', email: 'mary@example.org', notes: null, dateOfBirth: null }
  expect(data.slice(11, 13)).toMatchObject([[{ version: 0, ...first }], [{ version: 5, ...first }]])
  expect(data[13]).toHaveLength(2)
  expect(data[14]).toMatchObject([
    { id: 13, version: 5 },
    { code: 'PRESS' },
    { company: { name: 'Mechanism Press' } },
  ])
  expect(data[16]).toEqual(data[15])
})

test('the stream command of docs/guides/conflicts.md prints changes until it is stopped', async () => {
  const { url } = await start(['demo', '--port', '0', '--db', newDatabase()])
  const text = readFileSync(new URL('../../docs/guides/conflicts.md', import.meta.url), 'utf8')
  const [, login = ''] = /^```sh\n(curl -s -c ada.*?)^```$/ms.exec(text) ?? []
  const [, stream = ''] = /^```sh\n(curl -sN.*?)\n```$/ms.exec(text) ?? []
  const script = `${login}${stream} --max-time 5 || true`.replaceAll('http://localhost:8080', url)
  const cwd = mkdtempSync(path.join(scratch, 'docs-'))
  const printed = execFileSync('sh', ['-c', script], { cwd, encoding: 'utf8' })
  expect(printed.match(/^event: change$/gm)).toHaveLength(12)
})

test('the commands of docs/reference/history.md show a history, read past versions, and restore a record', async () => {
  const answers = await paste('docs/reference/history.md')
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 0))
  const data = answers.map((answer) => answer.data)
  expect(data[3]).toMatchObject([
    { version: 1, action: 'update', changes: { lastName: { before: 'Byron', after: 'Lovelace' } } },
    { version: 0, action: 'create' },
  ])
  expect(data.slice(4, 7)).toMatchObject([
    [{ id: 13, version: 0, lastName: 'Byron' }],
    [{ version: 0, lastName: 'Byron' }],
    [{ version: 1, lastName: 'Lovelace' }],
  ])
  expect(data.slice(7)).toMatchObject([
    [{ id: 13, fullName: 'Ada Lovelace' }],
    [{ version: 2, lastName: 'Byron' }],
    [13],
    [{ id: 13, version: 4, lastName: 'Lovelace' }],
  ])
})

test('the commands of docs/operations/import-export.md work', async () => {
  const cwd = mkdtempSync(path.join(scratch, 'docs-'))
  const { url } = await start(['demo', '--port', '0', '--db', `sqlite:${path.join(cwd, 'data/demo.db')}`])
  const text = readFileSync(new URL('../../docs/operations/import-export.md', import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  for (const block of blocks) expect(block).toMatch(/^(curl|printf|(VERSO_\w+=\w+ )?npm run verso --) /)
  const program = `verso() { '${process.execPath}' '${MAIN}' "$@"; }\n`
  const script = `${program}${blocks.join('echo\n')}`
    .replaceAll('npm run verso --', 'verso')
    .replaceAll('http://localhost:8080', url)
    .replaceAll('examples/contacts', fileURLToPath(new URL('../../examples/contacts', import.meta.url)))
  const printed = execFileSync('sh', ['-e', '-c', script], { cwd, encoding: 'utf8' })
  expect(printed).toMatch(/imported 25 records, 0 were there already/)
  expect(printed).toMatch(/imported 2 records, 0 were there already/)
  expect(printed).toMatch(/copy\/com.axelor.contact.db.Contact.ndjson: 12 records/)
  expect(printed).toMatch(/\nid,fullName,company.name\r\n\d+,[^,]+,Nordlicht Optik\r\n/)
})
