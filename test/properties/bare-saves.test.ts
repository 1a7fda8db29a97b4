// The fast path to save a record has the same answers, errors and Changes as the regular path.
import fc from 'fast-check'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import { readCreateDraft, readUpdateDraft } from '../../src/model/write/draft-reader.js'
import { addUser } from '../../src/service/auth/accounts.js'
import { isBare } from '../../src/service/write/bare-saves.js'
import { plainOf } from '../../src/service/write/plain.js'
import { isGroupable } from '../../src/service/context/hooks.js'
import { recordsFor } from '../../src/service/records/records.js'
import type { Records } from '../../src/wire.js'
import { identityIn, onEveryEngine, PASSWORD, startService, type Service } from '../targets.js'
import { createContext } from '../../src/service/context/context.js'

const RUNS = 12
const NOW = '2024-01-02T03:04:05.678Z'

const text = fc.constantFrom('a', 'b', '', 'é"\n', null, 7, { id: 1 })
const anyOf = (values: fc.Arbitrary<unknown>) => fc.oneof({ weight: 9, arbitrary: values }, text)
const FIELDS: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<unknown>>>>> = {
  'crm.Contact': {
    firstName: anyOf(text),
    lastName: anyOf(text),
    email: anyOf(text),
    phones: fc.constantFrom(null, [], ['1'], { home: '2' }),
    firtsName: fc.constant('misspelled'),
    fullName: fc.constant('computed'),
  },
  'test.Limited': {
    code: anyOf(fc.constantFrom('A1', 'B2', 'C3', 'x', 'too long')),
    country: anyOf(fc.constantFrom('FR', 'DE', 'abc')),
    number: anyOf(fc.constantFrom(1, 2, 3, 99)),
    rate: anyOf(fc.constantFrom('1.5', 1, '9.99', '1.505')),
    since: anyOf(fc.constantFrom('2001-02-03', '1999-01-01', 'soon')),
  },
  'test.Note': { title: anyOf(fc.constantFrom('a', 'b')), archived: fc.boolean() },
}

const steps = fc.constantFrom(...Object.keys(FIELDS)).chain((model) =>
  fc.record({
    model: fc.constant(model),
    data: fc.array(
      fc.record(
        { ...FIELDS[model], stale: fc.constantFrom(false, false, false, true) },
        { requiredKeys: ['stale'] },
      ),
      { minLength: 1, maxLength: 6 },
    ),
  }),
)

onEveryEngine((engine) => {
  let service: Service
  let callers: Records[]

  beforeAll(async () => {
    service = await startService(engine)
    const { app } = service
    const id = await addUser(app, { username: 'eve', name: 'Eve', password: PASSWORD, roles: ['editor'] })
    const eve = { id, version: 0, username: 'eve', name: 'Eve' }
    callers = [recordsFor(app, await identityIn(service)), recordsFor(app, eve)]
  })
  afterAll(async () => {
    await service.close()
  })

  /** The answer or the error, without ids and times, which differ between two records. */
  const told = async (work: () => Promise<unknown>): Promise<unknown> => {
    try {
      return JSON.parse(scrubbed(await work()))
    } catch (error) {
      if (!(error instanceof VersoError)) throw error
      const { kind, message, details } = error
      return JSON.parse(
        scrubbed({ kind, message: message.replace(/\d+/g, '#'), details: { ...details, cause: undefined } }),
      )
    }
  }

  test('the fast path of a save equals the regular path for random data and two principals', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.nat(1), async ({ model, data }, index) => {
        const records = callers[index]
        if (!records) throw new Error('there are two callers')
        await service.app.db.transaction((tx) => tx.run(`delete from "test.Limited"`))
        const ways = [{}, { isLong: true }].map(({ isLong = false }: { isLong?: boolean }) => ({
          /** A write with an idempotency key never takes the fast path. */
          options: () => (isLong ? { idempotencyKey: randomUUID() } : {}),
          id: undefined as number | undefined,
          version: 0,
        }))
        for (const { stale, ...fields } of data) {
          const answers: unknown[] = []
          for (const way of ways) {
            // Unique values are released before the other path runs.
            const { id, version } = way
            const request = {
              ...fields,
              ...(id === undefined ? {} : { version: stale ? version + 1 : version }),
            }
            answers.push(
              await told(async () => {
                const written =
                  id === undefined
                    ? await records.create(model, request, way.options())
                    : await records.update(model, id, request, way.options())
                Object.assign(way, { id: written.data.id, version: written.data.version })
                const { data: history } = await records.history(model, written.data.id)
                if (model === 'test.Limited') {
                  await records.remove(model, written.data.id, { version: written.data.version })
                  way.id = undefined
                }
                return { written, history }
              }),
            )
          }
          expect(answers[0]).toEqual(answers[1])
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
  })

  test('a save takes the fast path only if no relation, secret or role depends on it', async () => {
    const { app } = service
    const by = await app.authorizer.resolvePrincipal(await identityIn(service))
    const isShort = (model: string, data: object, version?: number) => {
      const known = app.catalog.get(model)
      const draft =
        version === undefined
          ? readCreateDraft(app.catalog, known, data, NOW)
          : readUpdateDraft(app.catalog, known, { data, key: { id: 1, version } }, NOW)
      const isPlain = isGroupable(app.hooks, draft.model) && plainOf(by, draft, {}, false) !== undefined
      return isPlain && isBare(createContext(app, by), draft)
    }
    expect([
      isShort('crm.Contact', { firstName: 'a' }),
      isShort('crm.Contact', { firstName: 'a' }, 3),
      isShort('test.Note', { title: 'a' }),
      isShort('rel.Address', { city: 'a' }),
      isShort('rel.Address', { city: 'a' }, 3),
    ]).toEqual([true, true, true, true, true])
    expect([
      isShort('verso.auth.Role', { name: 'a' }),
      isShort('crm.Contact', { password: 'a long enough password' }),
      isShort('rel.Address', { city: 'a', company: { id: 1 } }),
      isShort('rel.Address', { city: 'a', company: null }, 3),
      isShort('rel.Company', { name: 'a', addresses: [] }, 3),
      // The model refers to itself.
      isShort('rel.Company', { name: 'a' }),
    ]).toEqual([false, false, false, false, false, false])
  })
})

function scrubbed(value: unknown): string {
  const moment = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
  return JSON.stringify(value, (key, item: unknown) => {
    if (['id', 'entityId', 'seq', 'replayed', 'requestId'].includes(key)) return undefined
    return typeof item === 'string' && moment.test(item) ? '<moment>' : item
  })
}
