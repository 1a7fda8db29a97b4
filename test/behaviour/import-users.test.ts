// Users named by imported lines: found by name, or created.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addUser, listAllUsers } from '../../src/service/auth/accounts.js'
import type { App } from '../../src/service/context/app.js'
import { importRecords } from '../../src/service/transfer/import.js'
import type { Records } from '../../src/wire.js'
import { enter, onEveryEngine, PASSWORD, startService, type Service } from '../targets.js'
import { faultsOf, sourcesIn, writeFiles } from '../transfer/transfer-fixture.js'

onEveryEngine((engine) => {
  let service: Service
  let app: App
  let records: Records
  let scratch: string
  let folders = 0
  beforeAll(async () => {
    scratch = mkdtempSync(path.join(tmpdir(), 'verso-import-users-'))
    service = await startService(engine)
    app = service.app
    records = await enter(service, 'direct')
  })
  afterAll(async () => {
    await service.close()
    rmSync(scratch, { recursive: true })
  })

  const imports = async (notes: readonly object[]) => {
    const text = notes.map((note) => `${JSON.stringify(note)}\n`).join('')
    const folder = path.join(scratch, String(++folders))
    return importRecords(app, sourcesIn(app, writeFiles(folder, { 'test.Note.ndjson': text })))
  }

  describe('imported users of earlier releases', () => {
    const authorsOf = async (ids: readonly number[]) => {
      const read = ids.map((id) => records.fetch('test.Note', id, { fields: ['createdBy'] }))
      const authors = (await Promise.all(read)).map(({ createdBy }) => (createdBy as { id: number }).id)
      const named = new Map((await listAllUsers(app)).map(({ id, username }) => [id, username]))
      return authors.map((id) => named.get(id))
    }
    const notesBy = (from: number, usernames: readonly string[]) =>
      usernames.map((username, index) => ({ id: from + index, title: username, createdBy: { username } }))

    test('an import creates users with names that are invalid today', async () => {
      const notes = notesBy(31_000, ['мixed', 'αbc', '½'])
      expect((await imports(notes)).createdUsers).toEqual(['мixed', 'αbc', '½'])
      expect(await authorsOf([31_000, 31_001, 31_002])).toEqual(['мixed', 'αbc', '½'])
      expect(await imports(notes)).toMatchObject({ created: 0, existing: 3, createdUsers: [] })
    })

    test('an import finds users by their exact name first, then by a normalized one', async () => {
      // Stores the names as an earlier release did.
      for (const username of ['ｗide', 'wide', 'lone']) {
        const id = await addUser(app, {
          username: `older${username.codePointAt(0)}`,
          password: PASSWORD,
          roles: [],
        })
        await app.db.transaction((tx) =>
          tx.run('update "verso.auth.User" set "username" = ? where "id" = ?', [username, id]),
        )
      }
      const notes = notesBy(32_000, ['ｗide', 'wide', 'ＷIDE', 'WIDE', 'ｌone', 'ｎew', 'new'])
      const { createdUsers } = await imports(notes)
      expect(createdUsers).toEqual(['new'])
      expect(await authorsOf(notes.map((note) => note.id))).toEqual([
        'ｗide',
        'wide',
        'ｗide',
        'wide',
        'lone',
        'new',
        'new',
      ])
      const folded = notesBy(33_000, ['ｗide'.normalize('NFKC')])
      await imports(folded)
      expect(await authorsOf([33_000]), 'a reader that folds names is caught').toEqual(['wide'])
      // A second import resolves the names to the same accounts.
      expect(await imports(notes)).toMatchObject({ created: 0, existing: 7, createdUsers: [] })
      const other = [{ ...notes[4], createdBy: { username: 'wide' } }]
      expect(await faultsOf(imports(other))).toEqual([
        'test.Note.ndjson:1: test.Note 32004 already exists in this database with a different createdBy',
      ])
    })
  })
})
