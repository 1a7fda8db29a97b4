// Hooks of models: their order, how often they run, and what an error in one of them does.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { VersoError } from '../../src/errors.js'
import type { App, Hooks, ModelHooks, TransactionHooks } from '../../src/service/context/app.js'
import { composeHooks } from '../../src/service/context/hooks.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { changesSince } from '../log.js'
import { runOutsideTransaction } from '../mutants/hooks.js'
import type { Records } from '../../src/wire.js'
import { catchError, identityIn, onEveryEngine, startService, type Service } from '../targets.js'

const ADDRESS = 'rel.Address'
const DOOR = 'rel.Door'

onEveryEngine((engine) => {
  let service: Service
  let calls: string[] = []
  /** The call that fails, such as `rel.Door afterSave`. */
  let failing: string | undefined

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())
  beforeEach(() => {
    calls = []
    failing = undefined
  })

  function note(call: string): void {
    calls.push(call)
    if (call === failing) throw new VersoError('forbidden', `${call} fails`)
  }

  function hooksOf(model: string): ModelHooks {
    return {
      prepare: async (_, draft) => {
        note(`${model} prepare`)
        return draft
      },
      preparedFields: ['city'],
      beforeSave: () => {
        note(`${model} beforeSave`)
      },
      afterSave: () => {
        note(`${model} afterSave`)
      },
      beforeRemove: () => {
        note(`${model} beforeRemove`)
      },
      afterRemove: () => {
        note(`${model} afterRemove`)
      },
    }
  }

  const overall: TransactionHooks = {
    models: [ADDRESS],
    beforeCommit: async (_, changes) => {
      note(`beforeCommit of ${changes.length}`)
    },
    afterCommit: (_, changes) => {
      note(`afterCommit of ${changes.length}`)
    },
  }

  async function recordsWith(change: (hooks: Hooks) => Hooks = (hooks) => hooks): Promise<Records> {
    const hooks = composeHooks(
      [ADDRESS, DOOR].map((model) => [model, hooksOf(model)] as const),
      [overall],
    )
    const app: App = { ...service.app, hooks: change(hooks) }
    return recordsForPrincipal(app, await app.authorizer.resolvePrincipal(await identityIn(service)))
  }

  async function countChanges(): Promise<number> {
    return (await changesSince(service.app.db.reader, 0, 10_000)).length
  }

  test('a create runs the hooks of the record around those of its members, each once, and then those of the transaction', async () => {
    const records = await recordsWith()
    await records.create(ADDRESS, { city: 'Oslo', doors: [{ code: `${engine} a` }] })
    expect(calls).toEqual([
      ...[`${ADDRESS} prepare`, `${DOOR} prepare`],
      ...[`${ADDRESS} beforeSave`, `${DOOR} beforeSave`, `${DOOR} afterSave`, `${ADDRESS} afterSave`],
      ...['beforeCommit of 1', 'afterCommit of 1'],
    ])
  })

  test('an update runs the hooks of the record once', async () => {
    const records = await recordsWith()
    const { id, version } = (await records.create(ADDRESS, { city: 'Oslo' })).data
    calls = []
    await records.update(ADDRESS, id, { version, street: 'Main' })
    expect(calls).toEqual([
      ...[`${ADDRESS} prepare`, `${ADDRESS} beforeSave`, `${ADDRESS} afterSave`],
      ...['beforeCommit of 1', 'afterCommit of 1'],
    ])
  })

  test('a remove runs the hooks of the record around those of its members', async () => {
    const records = await recordsWith()
    const { id, version } = (
      await records.create(ADDRESS, { city: 'Rome', doors: [{ code: `${engine} b` }] })
    ).data
    calls = []
    await records.remove(ADDRESS, id, { version })
    expect(calls).toEqual([
      ...[`${ADDRESS} beforeRemove`, `${DOOR} beforeRemove`],
      ...[`${DOOR} afterRemove`, `${ADDRESS} afterRemove`],
      ...['beforeCommit of 1', 'afterCommit of 1'],
    ])
  })

  const FAILURES = [
    ...[`${ADDRESS} prepare`, `${ADDRESS} beforeSave`, `${ADDRESS} afterSave`],
    ...[`${DOOR} beforeSave`, `${DOOR} afterSave`, 'beforeCommit of 1'],
  ]

  /** The failures that left something behind, or were not reported. */
  async function keptAfterFailures(records: Records): Promise<string[]> {
    const kept: string[] = []
    for (const call of FAILURES) {
      failing = call
      const before = await countChanges()
      const data = { city: 'Nowhere', doors: [{ code: `${engine} ${call}` }] }
      const error = await records.create(ADDRESS, data).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (!(error instanceof VersoError) || (await countChanges()) !== before) kept.push(call)
    }
    return kept
  }

  test('an error in a hook rolls back the whole request', async () => {
    expect(await keptAfterFailures(await recordsWith())).toEqual([])
  })

  test('the test of rollbacks catches hooks that run outside of the transaction', async () => {
    const kept = await keptAfterFailures(await recordsWith(runOutsideTransaction))
    expect(kept).toContain(`${ADDRESS} afterSave`)
  })

  test('an error after the commit does not change the answer', async () => {
    const records = await recordsWith()
    failing = 'afterCommit of 1'
    const { data } = await records.create(ADDRESS, { city: 'Lima' })
    expect(calls).toContain(failing)
    expect(await records.read(ADDRESS, data.id)).toMatchObject({ city: 'Lima' })
  })

  test('a mass update cannot set a field that is checked beforehand', async () => {
    const records = await recordsWith()
    const all = { criteria: [{ fieldName: 'city', operator: '=', value: 'Lima' }] }
    const error = await catchError(records.updateMass(ADDRESS, { data: all, values: { city: 'Cusco' } }))
    expect(error).toMatchObject({ kind: 'invalid' })
  })

  test('a record that is checked beforehand is never merged', async () => {
    const records = await recordsWith()
    const { id, version } = (await records.create(ADDRESS, { city: 'Bern' })).data
    await records.update(ADDRESS, id, { version, street: 'Main' })
    const error = await catchError(
      records.update(ADDRESS, id, { version, city: 'Basel' }, { merge: 'fields' }),
    )
    expect(error.kind).toBe('conflict')
  })
})
