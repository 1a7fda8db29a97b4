// Every way in, over HTTP and direct × every hook: how often it runs, in which transaction, and what a refused write leaves behind.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError, VersoError } from '../../src/errors.js'
import type { App, Hooks } from '../../src/service/context/app.js'
import { composeHooks } from '../../src/service/context/hooks.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { createServer, type Server } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { HttpClient } from '../http-client.js'
import { expectFailures } from '../server-failures.js'
import { runHooksTwice, runOutsideTransaction, runWithoutHooks } from '../mutants/hooks.js'
import { changesSince } from '../log.js'
import {
  countAnew,
  identityIn,
  onEveryEngine,
  PASSWORD,
  startService,
  USERNAME,
  type Service,
  type Transport,
} from '../targets.js'
import { createShop, HookLog, LINE, ORDER, TRACE, type Failure } from './shop.js'
import { WAYS_IN, WAYS_WITHOUT_HOOKS, type Setting, type WayIn } from './ways-in.js'

type ChangeHooks = (hooks: Hooks) => Hooks

const sameHooks: ChangeHooks = (hooks) => hooks

function listWays(ways: Readonly<Record<string, WayIn>>): [Transport, string, WayIn][] {
  return Object.entries(ways).flatMap(([name, way]) =>
    (way.isDirect ? (['direct'] as const) : (['direct', 'http'] as const)).map(
      (transport): [Transport, string, WayIn] => [transport, name, way],
    ),
  )
}

onEveryEngine((engine) => {
  const log = new HookLog()
  let service: Service
  /** The records over HTTP for each change of the hooks. */
  const clients = new Map<ChangeHooks, HttpClient>()
  const servers: Server[] = []

  /** Starts a service of its own for the tests of a block. */
  function useService(beforeClose: () => Promise<void> = async () => undefined): void {
    beforeAll(async () => {
      service = await startService(engine, { models: createShop(log), runsBackgroundWork: true })
    })
    afterAll(async () => {
      await beforeClose()
      for (const server of servers.splice(0)) await server.close()
      clients.clear()
      await service.close()
    })
  }

  async function settingWith(transport: Transport, change: ChangeHooks = sameHooks): Promise<Setting> {
    const app: App = { ...service.app, hooks: change(service.app.hooks) }
    const quietApp: App = { ...service.app, hooks: composeHooks([], []) }
    const principal = await app.authorizer.resolvePrincipal(await identityIn(service))
    const quiet = recordsForPrincipal(quietApp, principal)
    if (transport === 'direct') return { app, records: recordsForPrincipal(app, principal), quiet }
    const client = clients.get(change) ?? (await serve(app))
    clients.set(change, client)
    return { app, records: client, quiet }
  }

  async function serve(app: App): Promise<HttpClient> {
    const server = await createServer(app, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
    servers.push(server)
    expectFailures(server.fastify.server, ['internal'])
    const [url = ''] = await server.listen()
    return HttpClient.login(url, USERNAME, PASSWORD)
  }

  /** Returns what is wrong with a write that succeeds. */
  async function findFaults(way: WayIn, setting: Setting): Promise<string[]> {
    const write = await way.prepare(setting)
    await service.app.settleHooks()
    log.clear()
    const before = await lastSeq()
    await write()
    const calls = [...log.inTransaction]
    await service.app.settleHooks()
    const changes = await changesSince(service.app.db.reader, before, 1_000)
    const faults: string[] = []
    if (calls.join() !== way.calls.join()) faults.push(`called ${calls.join()}`)
    const committed = changes.map(({ model }) => model)
    const traces = committed.filter((model) => model === TRACE).length
    if (traces !== way.calls.length) faults.push(`${traces} traces for ${way.calls.length} calls`)
    const own = committed.filter((model) => model !== TRACE).sort()
    if (own.join() !== [...way.commits].sort().join()) faults.push(`committed ${own.join()}`)
    if ([...log.afterCommit].sort().join() !== [...(way.afterCommit ?? own)].sort().join())
      faults.push(`after the commit: ${log.afterCommit.join()}`)
    return faults
  }

  async function lastSeq(): Promise<number> {
    return (await changesSince(service.app.db.reader, 0, 100_000)).at(-1)?.seq ?? 0
  }

  /** Returns the hooks whose failure left something behind, or was not reported as expected. */
  async function findLeftovers(way: WayIn, setting: Setting, how: Failure): Promise<string[]> {
    const leftovers: string[] = []
    for (const call of new Set(way.calls)) {
      const write = await way.prepare(setting)
      await service.app.settleHooks()
      log.clear()
      log.failing = { call, how }
      const before = await lastSeq()
      const error = await write().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      await service.app.settleHooks()
      if (!isExpected(error, how)) leftovers.push(`${call}: ${String(error)}`)
      if ((await lastSeq()) !== before) leftovers.push(`${call}: something was committed`)
      if (log.afterCommit.length > 0) leftovers.push(`${call}: ran after a commit that did not happen`)
    }
    log.clear()
    return leftovers
  }

  function isExpected(error: unknown, how: Failure): boolean {
    if (how === 'refuse')
      return (error instanceof VersoError && error.kind === 'forbidden') || error instanceof ConfigError
    if (error instanceof VersoError) return (error.kind as string) === 'internal'
    return error instanceof Error && !(error instanceof VersoError) && error.cause instanceof TypeError
  }

  describe('the hooks', () => {
    useService()

    describe.each(listWays(WAYS_IN))('%s: %s', (transport, _, way) => {
      test('every hook runs once for each record, in the transaction, and after the commit', async () => {
        expect(await findFaults(way, await settingWith(transport))).toEqual([])
      })

      test('a hook that refuses leaves nothing behind', async () => {
        expect(await findLeftovers(way, await settingWith(transport), 'refuse')).toEqual([])
      })

      test('a hook that crashes leaves nothing behind', async () => {
        expect(await findLeftovers(way, await settingWith(transport), 'crash')).toEqual([])
      })
    })

    describe.each(listWays(WAYS_WITHOUT_HOOKS))('%s: %s', (transport, _, way) => {
      test('no hook runs in the transaction', async () => {
        expect(await findFaults(way, await settingWith(transport))).toEqual([])
      })
    })
  })

  describe('mutants', () => {
    // Hooks outside of the transaction write rows that the Log does not contain.
    useService(() => countAnew(service, ORDER, LINE, TRACE))

    test.each(Object.entries(WAYS_IN))(
      '%s: hooks that do not run, run twice, or run outside of the transaction are caught',
      async (_, way) => {
        expect(await findFaults(way, await settingWith('direct', runWithoutHooks))).not.toEqual([])
        expect(await findFaults(way, await settingWith('direct', runHooksTwice))).not.toEqual([])
        expect(
          await findLeftovers(way, await settingWith('direct', runOutsideTransaction), 'refuse'),
        ).not.toEqual([])
      },
    )
  })
})
