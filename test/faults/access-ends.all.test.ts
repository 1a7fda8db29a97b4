// After one node acknowledged the end of a session, key or account, no node accepts its writes; reads end within a second.
import { expect, test } from 'vitest'
import { USER_MODEL } from '../../src/model/definition/model.js'
import { ForgettingAccess, keepingAccessEnds } from '../mutants/accounts.js'
import { onEveryEngine, PASSWORD } from '../targets.js'
import { asUser, JSON_BODY, send, withServer, type Answer } from '../wire/exchange.js'
import { NEW_PASSWORD, withAccessNodes, type Credentials, type Somebody } from './access-nodes.js'

const KEYS = 'verso.auth.ApiKey'
const LONG_AGO = '2001-01-01T00:00:00.000Z'
const ATTEMPTS = 20

onEveryEngine((engine) => {
  const nodes = withAccessNodes(engine)

  const hammer = async (who: Credentials, firstName: string, url = nodes().there.url) => {
    const attempts = Array.from({ length: ATTEMPTS }, () => nodes().create(who, firstName, url))
    const answers = [...(await Promise.all(attempts)), await nodes().create(who, firstName, url)]
    return [...new Set(answers.map(({ status }) => status))]
  }
  const change = async ({ id }: Somebody, values: object) => {
    const { admin } = nodes()
    const { version } = await admin.read(USER_MODEL, id)
    return admin.update(USER_MODEL, id, { version, ...values })
  }
  const asNew = async ({ id }: Somebody) => asUser(nodes().here.url, await nodes().open(id))

  interface Case {
    readonly what: string
    readonly by: 'session' | 'key'
    readonly act: (who: Somebody) => Promise<unknown>
  }

  const both = (what: string, act: Case['act']): Case[] => [
    { what, by: 'session', act },
    { what, by: 'key', act },
  ]
  const CASES: readonly Case[] = [
    { what: 'a logout', by: 'session', act: ({ cookie }) => nodes().logOut(cookie) },
    {
      ...{ what: 'ending all own sessions', by: 'session' },
      act: async (who) => (await asNew(who)).ask('DELETE', '/ws/me/sessions'),
    },
    {
      ...{ what: 'ending one own session', by: 'session' },
      act: async (who) => {
        const user = await asNew(who)
        const listed = await user.get('/ws/me/sessions')
        const { data } = JSON.parse(listed.text) as { data: { id: string; current: boolean }[] }
        for (const { id: session, current } of data)
          if (!current) await user.ask('DELETE', `/ws/me/sessions/${session}`)
      },
    },
    {
      ...{ what: 'an administrator ending the sessions', by: 'session' },
      act: ({ id }) => nodes().admin.request('DELETE', `/ws/users/${id}/sessions`),
    },
    {
      ...{ what: 'changing the own password', by: 'session' },
      act: async (who) =>
        (await asNew(who)).ask('POST', '/ws/me/password', { old: PASSWORD, new: NEW_PASSWORD }),
    },
    {
      ...{ what: 'a login that replaces the session', by: 'session' },
      act: ({ username, cookie }) =>
        send(nodes().here.url, {
          ...{ method: 'POST', path: '/callback', headers: { ...JSON_BODY, cookie } },
          body: JSON.stringify({ username, password: PASSWORD }),
        }),
    },
    {
      what: 'an administrator setting a new password',
      by: 'session',
      act: (who) => change(who, { password: NEW_PASSWORD }),
    },
    { what: 'renaming the user', by: 'session', act: (who) => change(who, { username: `x${who.id}` }) },
    ...both('disabling the account', (who) => change(who, { disabled: true })),
    {
      ...{ what: 'removing the account', by: 'session' },
      act: async ({ id, keyId }) => {
        const { admin } = nodes()
        await admin.remove(KEYS, keyId, { version: 0 })
        const { version } = await admin.read(USER_MODEL, id)
        await admin.remove(USER_MODEL, id, { version })
      },
    },
    {
      ...{ what: 'using a reset link', by: 'session' },
      act: async ({ id }) => {
        const { admin, here } = nodes()
        const made = await admin.request('POST', `/ws/users/${id}/reset`)
        const { data } = (await made.json()) as { data: { link: string }[] }
        const path = (data[0]?.link ?? '').slice(here.url.length)
        await send(here.url, { method: 'POST', path, body: JSON.stringify({ password: NEW_PASSWORD }) })
      },
    },
    {
      ...{ what: 'revoking the key', by: 'key' },
      act: ({ keyId }) => nodes().admin.remove(KEYS, keyId, { version: 0 }),
    },
    {
      ...{ what: 'its user removing the key', by: 'key' },
      act: ({ cookie, keyId }) => asUser(nodes().here.url, cookie).ask('DELETE', `/ws/me/keys/${keyId}`),
    },
    {
      ...{ what: 'setting a past expiry of the key', by: 'key' },
      act: ({ keyId }) => nodes().admin.update(KEYS, keyId, { version: 0, expiresOn: LONG_AGO }),
    },
  ]

  test.each(CASES)(
    'after $what, another node rejects every write with that $by, and reads within a second',
    async ({ by, act }) => {
      const who = await nodes().somebody()
      // Fills the cache of the other node: a cached session must not count.
      expect((await nodes().create(who[by], `first of ${who.username}`)).status).toBe(200)
      await act(who)
      const name = `late ${who.username}`
      expect(await hammer(who[by], name)).toEqual([401])
      expect(await nodes().written(name)).toBe(0)
      nodes().there.clock.letASecondPass()
      expect(await nodes().read(who[by])).toBe(401)
    },
  )

  test.each([
    ['disabling the account', { disabled: true }],
    ['setting a new password', { password: NEW_PASSWORD }],
  ])('after %s, another node rejects writes with the old name and password', async (_, values) => {
    const who = await nodes().somebody()
    const basic = {
      authorization: `Basic ${Buffer.from(`${who.username}:${PASSWORD}`).toString('base64')}`,
    }
    expect((await nodes().create(basic, 'before')).status).toBe(200)
    await change(who, values)
    expect((await nodes().create(basic, `late ${who.username}`)).status).toBe(401)
    expect(await nodes().written(`late ${who.username}`)).toBe(0)
  })

  test('writes of other users succeed in the same group commit as rejected writes of an ended session', async () => {
    const [ended, other] = [await nodes().somebody(), await nodes().somebody()]
    for (const { session } of [ended, other])
      expect((await nodes().create(session, 'known')).status).toBe(200)
    await nodes().logOut(ended.cookie)
    const answers: Promise<Answer>[] = []
    for (let index = 0; index < ATTEMPTS; index++)
      answers.push(nodes().create(ended.session, 'of nobody'), nodes().create(other.session, 'beside it'))
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.filter((_, index) => index % 2 === 0)).toEqual(Array(ATTEMPTS).fill(401))
    expect(statuses.filter((_, index) => index % 2 === 1)).toEqual(Array(ATTEMPTS).fill(200))
    expect([await nodes().written('of nobody'), await nodes().written('beside it')]).toEqual([0, ATTEMPTS])
  })

  test('the end of one session does not end the sessions and keys of other users', async () => {
    const [ended, other] = [await nodes().somebody(), await nodes().somebody()]
    expect((await nodes().create(other.session, 'stays')).status).toBe(200)
    for (let round = 0; round < 3; round++) {
      await nodes().logOut(await nodes().open(ended.id))
      expect(await hammer(other.session, 'stays')).toEqual([200])
      expect(await hammer(other.key, 'stays')).toEqual([200])
    }
  })

  test('the mutant that does not count ended sessions is caught', async () => {
    const { here } = nodes()
    const silent = { ...here.app, db: keepingAccessEnds(here.app.db) }
    await withServer({ ...here, app: silent }, {}, async (url) => {
      const who = await nodes().somebody()
      expect((await nodes().create(who.session, 'known')).status).toBe(200)
      await nodes().logOut(who.cookie, url)
      expect(await hammer(who.session, `late ${who.username}`)).toEqual([200])
    })
  })

  test('the mutant cache that ignores the count of ended sessions is caught', async () => {
    const { there } = nodes()
    const trusting = { ...there.app, sessionCache: new ForgettingAccess(() => there.clock.elapsed()) }
    await withServer({ ...there, app: trusting }, {}, async (url) => {
      const who = await nodes().somebody()
      expect((await nodes().create(who.session, 'known', url)).status).toBe(200)
      await nodes().logOut(who.cookie)
      expect(await hammer(who.session, `late ${who.username}`, url)).toEqual([200])
    })
  })
})
