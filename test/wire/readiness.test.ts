// The body of `/readyz`: whether the node can write, why not, warnings and facts. It answers within a second in any state.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type * as ServerModule from '../../src/http/server.js'
import { createServer } from '../../src/http/server.js'
import { DEFAULT_HTTP_SETTINGS } from '../../src/http/settings.js'
import { openDatabase } from '../../src/store/open.js'
import { HeldDatabase } from '../held-database.js'
import { createMutantProgram } from '../mutants/program.js'
import { expectFailures } from '../server-failures.js'
import { onEngineOfTier, preparedLocation, startService, type Service } from '../targets.js'
import { envelope, expectError, json, send } from './exchange.js'

/** The longest time that a balancer should wait for the answer. */
const READINESS_BAR_MS = 1_000

onEngineOfTier((engine) => {
  let service: Service
  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  const ready = async () => (json(await send(service.url, { path: '/readyz' })) as { data: unknown }).data

  test('the body contains the warnings and facts of the parts of the service while they report any', async () => {
    const warnings: string[] = []
    const removals = [
      service.app.readiness.add(() => ({ warnings })),
      service.app.readiness.add(() => ({ warnings: ['The backup is old'], facts: { lastBackup: null } })),
      service.app.readiness.add(() => ({})),
    ]
    expect(await ready()).toEqual([{ writable: true, lastBackup: null, warnings: ['The backup is old'] }])
    warnings.push('The clock is 3 s ahead')
    expect(await ready()).toEqual([
      { writable: true, lastBackup: null, warnings: ['The clock is 3 s ahead', 'The backup is old'] },
    ])
    for (const remove of removals) remove()
    expect(await ready()).toEqual([{ writable: true }])
  })

  /** Checks a service whose database does not answer. Returns how long the two slowest of three answers took. */
  const checkSilentDatabase = async (create: typeof createServer) => {
    const location = await preparedLocation(engine)
    const database = new HeldDatabase(
      await openDatabase(location.url, { poolSize: 3, statementTimeoutMs: 10_000 }),
    )
    const held = await startService(engine, { location, database })
    held.app.readiness.add(() => ({ facts: { lastBackup: null } }))
    const server = await create(held.app, { ...DEFAULT_HTTP_SETTINGS, host: '127.0.0.1', port: 0 })
    expectFailures(server.fastify.server, ['busy'])
    const [url = ''] = await server.listen()
    const isHeld = database.hold()
    const startMs = performance.now()
    const answering = [1, 2, 3].map(() => send(url, { path: '/readyz' }))
    await isHeld
    const slow = setTimeout(() => {
      database.release()
    }, 3_000)
    const answers = await Promise.all(answering)
    const ms = performance.now() - startMs
    clearTimeout(slow)
    const { questionsAsked } = held.app.db.gauges()
    database.release()
    await server.close()
    await held.close()
    location.remove()
    return { answers, ms, questionsAsked }
  }

  test('a database that does not answer makes the node not ready within a second, and is queried once', async () => {
    const { answers, ms, questionsAsked } = await checkSilentDatabase(createServer)
    for (const answer of answers) {
      expectError(answer, 503, 'busy')
      expect(envelope(answer).data).toMatchObject({
        writable: false,
        problem: 'no-answer',
        message: 'The database did not answer within 700 ms',
        lastBackup: null,
      })
    }
    expect(ms).toBeLessThan(READINESS_BAR_MS)
    expect(questionsAsked).toBe(1)
  })

  test('the mutant that waits for the database is caught', async () => {
    const dist = createMutantProgram(inject('runFolder'), {
      file: 'http/meta/readiness.js',
      from: 'Promise.race([this.#running, timeout])',
      to: 'this.#running',
    })
    const mutant = (await import(
      /* @vite-ignore */ pathToFileURL(path.join(dist, 'http/server.js')).href
    )) as typeof ServerModule
    const { answers, ms } = await checkSilentDatabase(mutant.createServer)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(ms).toBeGreaterThan(READINESS_BAR_MS)
  })
})
