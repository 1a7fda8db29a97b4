// A database from before sessions had an address, and idempotency keys a permissions version.
import { expect, test } from 'vitest'
import { createApp } from '../../src/service/create-app.js'
import { listOpenSessions, authenticate, login } from '../../src/service/auth/sessions.js'
import { recordsFor } from '../../src/service/records/records.js'
import { findCredentials } from '../../src/store/auth/accounts.js'
import { models } from '../models.js'
import { identityIn, newLocation, onEveryEngine, PASSWORD, startService, USERNAME } from '../targets.js'

const NOTE = { title: 'once' }

onEveryEngine((engine) => {
  test('an upgrade keeps sessions and idempotency keys, also with two nodes that start concurrently', async () => {
    const location = await newLocation(engine)
    const before = await startService(engine, { location })
    const { sessionId } = await login(
      before.app,
      { username: USERNAME, password: PASSWORD },
      { address: '10.0.0.1' },
    )
    const options = { idempotencyKey: 'once' }
    const first = await recordsFor(before.app, await identityIn(before)).create('test.Note', NOTE, options)
    await before.app.db.transaction(async (tx) => {
      for (const column of ['address', 'agent'])
        await tx.run(`alter table verso_session drop column ${column}`)
      await tx.run('drop table verso_reset_link')
      await tx.run(`delete from verso_epoch where name = 'tables'`)
      await tx.run('alter table verso_idempotency drop column epoch')
    })
    await before.close()
    const open = () => createApp({ settings: { db: location.url }, models })
    const [app, other] = await Promise.all([open(), open()])
    try {
      const principal = await authenticate(app, sessionId)
      expect(principal?.user?.username).toBe(USERNAME)
      await login(
        other,
        { username: USERNAME, password: PASSWORD },
        { address: '10.0.0.2', agent: 'Browser/1' },
      )
      const id = (await findCredentials(app.db.reader, USERNAME))?.user.id ?? 0
      const sessions = (await listOpenSessions(app, id)).map(({ address, agent }) => [address, agent])
      expect(sessions).toEqual([
        ['10.0.0.2', 'Browser/1'],
        [null, null],
      ])
      if (!principal?.user) throw new Error('there is nobody')
      const again = await recordsFor(other, principal.user).create('test.Note', NOTE, options)
      expect(again).toEqual({ ...first, replayed: true })
      // An older node on the same database does not know the columns.
      await app.db.transaction((tx) =>
        tx.run('insert into verso_session (hash, user_id, created_ms, seen_ms) values (?, ?, ?, ?)', [
          ...['older', id, app.clock.now(), app.clock.now()],
        ]),
      )
      expect(await listOpenSessions(app, id)).toHaveLength(3)
    } finally {
      await app.close()
      await other.close()
      location.remove()
    }
  })
})
