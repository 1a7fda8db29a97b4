// The commands of the pages work when a reader pastes them, one after the other, and print what the pages say.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { cleanUpAfterwards, newDatabase, scratch, start } from '../cli/program.js'
import { HttpClient } from '../http-client.js'
import { readPage } from './page.js'
import { findFreePort, followPage, type ReaderOptions } from './reader.js'

cleanUpAfterwards()

interface Body {
  readonly status: number
  readonly data: readonly Record<string, unknown>[] & Readonly<Record<string, unknown>>
}

/** Follows a page whose commands print bodies of responses; returns all bodies in order. */
async function paste(page: string, options: ReaderOptions = { demo: [] }): Promise<Body[]> {
  const { outputs } = await followPage(page, options)
  return outputs.flatMap(parseBodies)
}

/** curl prints no line break between two bodies. */
function parseBodies(output: string): Body[] {
  const lines = output.replaceAll(/\}(?=\{"status")/g, '}\n').split('\n')
  return lines.flatMap((line) => (line.startsWith('{"status"') ? [JSON.parse(line) as Body] : []))
}

test('the commands of docs/reference/filters.md work', async () => {
  const answers = await paste('docs/reference/filters.md')
  expect(answers).toHaveLength(6)
  for (const { status, data } of answers) {
    expect(status).toBe(0)
    expect(data.length).toBeGreaterThan(0)
  }
})

test('the commands of README.md resolve a conflict, and serve models of your own', async () => {
  const { outputs, folder } = await followPage('README.md', { demo: [] })
  const answers = outputs.flatMap(parseBodies)
  expect(answers.map(({ status }) => status)).toEqual([0, 0, 0, -1, 0])
  expect(answers[1]?.data).toMatchObject([{ id: 13, version: 0 }])
  expect(answers[3]?.data).toMatchObject({
    kind: 'conflict',
    mergeable: true,
    current: 1,
    fields: { lastName: { verdict: 'theirs' }, phone: { verdict: 'ours' } },
  })
  expect(answers[4]?.data).toMatchObject([{ version: 2, lastName: 'Lovelace', phone: '555-0100' }])
  expect(readdirSync(path.join(folder, 'models')).sort()).toEqual(['tag.json', 'task.ts'])
  expect(readdirSync(path.join(folder, 'data'))).toContain('verso.db')
})

test('the commands of docs/reference/permissions.md give a user one role, which limits what they see and change', async () => {
  const answers = await paste('docs/reference/permissions.md')
  expect(answers.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0, -1, 0, 0])
  const [role, user, bob, foreign, rejected, own, changed] = answers.slice(1).map(({ data }) => data)
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
    [{ id: 13, version: 0 }],
    [{ id: 13, version: 1, fullName: 'Grace Hopper' }],
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

test('the commands of docs/operations/commands.md work, and print what the page shows', async () => {
  const { outputs } = await followPage('docs/operations/commands.md', { demo: [] })
  const printed = outputs.join('')
  const shown =
    /^```\n(helper: .*?)^```$/ms.exec(readPage('docs/operations/commands.md'))?.[1] ?? 'nothing is shown'
  expect(printed).toContain(shown)
  expect(printed).toMatch(/"total":12,/)
  expect(printed).toContain('revoked key 1')
  expect(printed).toMatch(/version +action +time +user +changes\n0 +create /)
  expect(printed).toMatch(/removed the values of 1 change of com\.axelor\.contact\.db\.Contact 1/)
})

test('the commands of docs/reference/axelor.md work', async () => {
  const [models, made, rejected] = await paste('docs/reference/axelor.md', {})
  expect(models?.data).toContainEqual(expect.objectContaining({ fullName: 'com.axelor.contact.db.Contact' }))
  expect(made?.data).toMatchObject([{ firstName: 'Ada', company: { id: 1, name: 'Nordlicht Optik' } }])
  expect(rejected).toMatchObject({ status: -1, data: { kind: 'bad-request' } })
})

test('the commands of docs/reference/domain-xml.md lend a book and find its loan', async () => {
  const answers = await paste('docs/reference/domain-xml.md', {
    demo: ['--port', '8082', '--models', 'examples/domain-xml'],
  })
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
  const port = await findFreePort()
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
    [{ id: 13, version: 3, action: 'delete', changes: { lastName: { before: 'Byron', after: null } } }],
    [{ id: 13, version: 4, lastName: 'Lovelace' }],
  ])
})

test('the commands of docs/operations/import-export.md copy records between databases and services', async () => {
  const { outputs } = await followPage('docs/operations/import-export.md', { demo: [] })
  const printed = outputs.join('')
  expect(printed).toMatch(/imported 25 records, 0 .*/)
  expect(printed).toMatch(/imported 2 records, 0 .*/)
  expect(printed).toMatch(/copy\/com.axelor.contact.db.Contact.ndjson: 12 records/)
  expect(printed).toMatch(/id,fullName,company.name\r\n\d+,[^,]+,Nordlicht Optik\r\n/)
})

test('the commands of docs/operations/monitoring.md show health, readiness and login events', async () => {
  const answers = await paste('docs/operations/monitoring.md')
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 0))
  expect(answers[2]?.data).toEqual([{ writable: true }])
  expect(answers[4]?.data).toMatchObject([{ kind: 'login' }])
})

test('the commands of docs/operations/settings.md start the service in each of its ways', async () => {
  const { folder } = await followPage('docs/operations/settings.md')
  expect(
    readdirSync(path.join(folder, 'data'))
      .filter((name) => name.endsWith('.db'))
      .sort(),
  ).toEqual(['demo.db', 'verso.db'])
})

test('the commands of docs/reference/models.md create and serve a starter folder', async () => {
  const { folder } = await followPage('docs/reference/models.md')
  expect(readdirSync(path.join(folder, 'data'))).toContain('verso.db')
})

test('the commands of docs/reference/routes.md call the routes of the page', async () => {
  const { outputs } = await followPage('docs/reference/routes.md')
  const output = outputs.join('\n')
  expect(output).toContain('{"ids":[1,2]}')
  expect(output).toContain('{"for":"admin","open":2,"titles":["Call Ada","Write to Bob"]}')
})

test('the commands of docs/operations/backup.md restore backups of a running demo and of a stopped one, and verify them', async () => {
  const { outputs } = await followPage('docs/operations/backup.md', {
    demo: [],
    // The page says to stop the service first.
    adapt: (step) =>
      step.text.includes('tar -czf') ? { ...step, text: `stop_server service-default\n${step.text}` } : step,
  })
  expect(outputs.join('').match(/^integrity: .* no errors$/gm)).toHaveLength(2)
})
