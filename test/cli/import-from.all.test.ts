// Copies the records of a running service: Verso on both engines, and a server that behaves like another system.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startServerProcess } from '../faults/server-process.js'
import { enter, ENGINES, newLocation, PASSWORD, startService, USERNAME } from '../targets.js'
import { startOtherSystem, type OtherOptions, type OtherSystem } from '../transfer/other-system.js'
import { digestOf, exported, fill, blobPath, readFiles, writeModels } from '../transfer/transfer-fixture.js'
import { cleanUpAfterwards, scratch, verso } from './program.js'

cleanUpAfterwards()

let models: string
let folders = 0
beforeAll(() => {
  models = writeModels(scratch)
})

const newFolder = () => path.join(scratch, `staging-${++folders}`)

async function copy(
  url: string,
  db: string,
  staging: string,
  more: readonly string[] = [],
  password = 'admin',
) {
  const from = ['--from', url, '--username', password === PASSWORD ? USERNAME : 'admin', '--staging', staging]
  return verso(['import', '--models', models, '--db', db, ...from, ...more], '', {
    VERSO_FROM_PASSWORD: password,
  })
}

/** Only the owner can read the copied files. */
function expectPrivate(folder: string): void {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  expect(entries.filter((entry) => entry.isFile()).length).toBeGreaterThan(10)
  for (const entry of entries) {
    const { mode } = statSync(path.join(entry.parentPath, entry.name))
    expect([entry.name, mode & 0o777]).toEqual([entry.name, entry.isDirectory() ? 0o700 : 0o600])
  }
}

describe.each(ENGINES)('import --from Verso on %s', (engine) => {
  test('import --from copies all records of another Verso, except for the users who wrote them', async () => {
    const source = await newLocation(engine)
    const service = await startService(engine, { location: source })
    await fill(service.app, await enter(service, 'direct'))
    const files = await exported(service.app)
    await service.close()
    const node = await startServerProcess(source.url)
    const location = await newLocation('sqlite')
    const staging = newFolder()
    const { code, stderr, stdout } = await copy(node.url, location.url, staging, [], PASSWORD)
    await node.kill()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('imported 29 records')
    expectPrivate(staging)
    const copied = await startService('sqlite', { location })
    const withoutUsers = (text = '') => text.replace(/"username":"\w+"/g, '').replace(/:\{\}/g, ':null')
    const arrived = await exported(copied.app)
    await copied.close()
    for (const [name, text] of Object.entries(files)) expect(arrived[name]).toBe(withoutUsers(text))
  })
})

describe('import --from another system', () => {
  const records = {
    'test.Everything': [
      {
        ...{
          id: 3,
          version: 2,
          label: 'a',
          extra: '{"b":[1]}',
          moment: '2024-01-02T03:00Z',
          price: '60.0000000000',
        },
        ...{
          createdOn: '2024-01-02T03:04:05.123456Z',
          createdBy: { id: 1, $version: 0, name: 'Admin' },
          selected: false,
        },
      },
      { id: 7, version: 0, moment: '2024-01-02T03:04:05', extra: 'no json', updatedOn: null, archived: null },
      { id: 8, version: 1, extra: '"8"' },
    ],
    'com.axelor.meta.db.MetaFile': [
      { id: 2, version: 1, fileName: 'page.html', fileType: 'text/html', fileSize: 99, filePath: 'x/y' },
      { id: 5, version: 0, fileName: 'nothing', fileType: 'text/html', fileSize: 1 },
    ],
    'rel.Circle': [{ id: 1, version: 0, name: 'One', members: [] }],
    'rel.Person': [
      {
        id: 4,
        version: 1,
        name: 'Ada',
        circles: [{ id: 1, $version: 0, name: 'One' }],
        boss: { id: 4, $version: 1 },
      },
    ],
  }
  let other: OtherSystem | undefined
  afterEach(() => other?.close())
  const page = {
    disposition: `attachment; filename="p_.html"; filename*=UTF-8''p%C3%A4.html`,
    content: '<b>!',
  }
  const files = {
    'com.axelor.meta.db.MetaFile/2/content': page,
    'com.axelor.meta.db.MetaFile/5/content': null,
  }
  const start = async (options: OtherOptions = {}) =>
    (other = await startOtherSystem(records, { files, ...options }))

  test('import --from reads the formats of another system, retries, and skips models that it does not have', async () => {
    const { url } = await start({ troubles: 2, searchesInASession: 3, brokenDownloads: 1 })
    const location = await newLocation('sqlite')
    const staging = newFolder()
    const { code, stderr, stdout } = await copy(url, location.url, staging)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`rel.Door: skipped, ${url} does not have this model\n`)
    expect(stdout).toContain('imported 7 records')
    const service = await startService('sqlite', { location })
    const read = await enter(service, 'direct')
    expect(await read.read('test.Everything', 3)).toMatchObject({
      ...{ version: 2, label: 'a', extra: { b: [1] }, moment: '2024-01-02T03:00:00.000Z', price: '60.00' },
      ...{ createdOn: '2024-01-02T03:04:05.123Z', createdBy: null },
    })
    expect(await read.read('test.Everything', 7)).toMatchObject({
      extra: 'no json',
      moment: '2024-01-02T03:04:05.000Z',
    })
    const plain = 'text/plain; charset=utf-8'
    const file = await read.download('com.axelor.meta.db.MetaFile', 2, 'content')
    for await (const chunk of file?.content ?? []) expect(Buffer.from(chunk).toString()).toBe(page.content)
    expect(await read.read('com.axelor.meta.db.MetaFile', 2)).toMatchObject({ fileType: plain, fileSize: 4 })
    expect(await read.read('com.axelor.meta.db.MetaFile', 5)).toMatchObject({
      fileType: null,
      fileSize: null,
    })
    const copied = readFiles(staging)
    expect(copied['com.axelor.meta.db.MetaFile.ndjson']).toContain(
      `"content":{"name":"pä.html","type":"${plain}"`,
    )
    expect(copied[blobPath(page.content)]).toBe(digestOf(page.content))
    expect(await read.read('rel.Person', 4)).toMatchObject({
      version: 1,
      circles: [{ id: 1 }],
      boss: { id: 4 },
    })
    await service.close()
  })

  test('an interrupted import --from continues after the last copied record', async () => {
    const { url, searches } = await start()
    const [location, staging] = [await newLocation('sqlite'), newFolder()]
    await copy(url, location.url, staging, ['--model', 'test.Everything'])
    const file = path.join(staging, 'test.Everything.ndjson')
    const text = readFileSync(file, 'utf8')
    const again = newFolder()
    await copy(url, location.url, again, ['--model', 'rel.Circle'])
    writeFileSync(path.join(again, 'test.Everything.ndjson.part'), text.slice(0, text.indexOf('\n') + 20))
    const before = searches.length
    const { stdout } = await copy(url, location.url, again, ['--model', 'test.Everything'])
    expect(stdout).toContain('test.Everything.ndjson: 2 records\nimported 0 records, 3 existed already')
    expect(searches[before]).toEqual({ model: 'test.Everything', after: 3 })
    expect(readFiles(again)['test.Everything.ndjson']).toBe(text)
  })

  test('import --from fails if a file of the other system is missing', async () => {
    const { url } = await start({ files: {} })
    const location = await newLocation('sqlite')
    const { code, stderr } = await copy(url, location.url, newFolder(), [
      ...['--model', 'com.axelor.meta.db.MetaFile'],
    ])
    expect(code).toBe(1)
    expect(stderr).toContain('com.axelor.meta.db.MetaFile 2, 5: the files cannot be downloaded')
  })

  test('import --from fails if the other system ignores the criterion on id', async () => {
    const { url } = await start({ isWithoutCriteria: true })
    const { code, stderr } = await copy(url, (await newLocation('sqlite')).url, newFolder(), [
      '--model',
      'test.Everything',
    ])
    expect(code).toBe(1)
    expect(stderr).toContain('test.Everything: the other service does not filter and sort by id')
  })

  test('import --from reports a rejected login and an unknown model', async () => {
    const { url } = await start()
    const location = await newLocation('sqlite')
    const rejected = await copy(url, location.url, newFolder(), [], 'wrong')
    expect(rejected).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the login of admin was rejected'),
    })
    const missing = await copy(url, location.url, newFolder(), ['--model', 'rel.Door'])
    expect(missing).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('does not have the model rel.Door'),
    })
  })

  test('import --from fails if the other system has none of the models', async () => {
    other = await startOtherSystem({})
    const { code, stderr } = await copy(other.url, (await newLocation('sqlite')).url, newFolder())
    expect(code).toBe(1)
    expect(stderr).toContain('has none of these models')
  })

  test('import --from reports an unreachable system', async () => {
    const { url } = await start()
    other?.close()
    const { code, stderr } = await copy(url, (await newLocation('sqlite')).url, newFolder())
    expect(code).toBe(1)
    expect(stderr).toContain('the service cannot be reached: ')
  })
})

test('import --from reports all missing options together', async () => {
  const { code, stderr } = await verso(['import', '--models', models, '--from', 'old.example.org', 'x.csv'])
  expect(code).toBe(1)
  for (const fault of [
    '--from must be',
    '--username is missing',
    '--staging is missing',
    'the password is missing',
    'not both',
  ])
    expect(stderr).toContain(fault)
})
