// A merge reveals no more than a conflict: its success says nothing about hidden values.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConflictError, connect } from 'verso-records/client'
import type { VersoError } from '../../src/errors.js'
import { defineModel } from '../../src/model/definition/define-model.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import type { Records } from '../../src/wire.js'
import { onEveryEngine, catchError, PASSWORD, startService, type Service } from '../targets.js'
import { NamingPermissions } from '../mutants/permissions.js'
import { importMutantClient, OVERWRITING_UNSEEN } from '../mutants/client-code.js'
import { grantee, officeModels, rootOf, TEAM } from './office-fixture.js'

const MODEL = 'office.Place'
const MERGE = { merge: 'fields' } as const

function checkNote(note: unknown, secret: unknown): string | null {
  if (note === 'refused') throw new Error(`the secret is ${String(secret)}`)
  return typeof note === 'string' && note.startsWith('long') ? note.repeat(100) : null
}

const Place = defineModel({
  name: MODEL,
  fields: {
    street: { type: 'string' },
    zip: { type: 'string' },
    secret: { type: 'string' },
    note: { type: 'string' },
    region: { type: 'string' },
    checked: { type: 'string', length: 255, computed: ({ note, secret }) => checkNote(note, secret) },
    facts: { type: 'json' },
    team: { type: 'many-to-one', target: TEAM },
    teams: { type: 'many-to-many', target: TEAM },
  },
  mergeGroups: [['street', 'zip']],
})

const SHOWN = ['street', 'note', 'region']

onEveryEngine((engine) => {
  let service: Service
  let root: Records

  beforeAll(async () => {
    service = await startService(engine, {
      models: [...officeModels, { file: 'office.ts', definition: Place }],
    })
    root = rootOf(service)
  })
  afterAll(() => service.close())

  const changed = async (before: object, change: object): Promise<number> => {
    const { data } = await root.create(MODEL, before)
    await root.update(MODEL, data.id, { version: 0, ...change })
    return data.id
  }
  const told = ({ kind, details: { data } }: VersoError) => ({
    ...{ kind, fields: data?.['fields'], baseKnown: data?.['baseKnown'], mergeable: data?.['mergeable'] },
  })

  test('a merge writes readable fields next to hidden changes', async () => {
    const may = { model: MODEL, canRead: true, canUpdate: true, readable: SHOWN, writable: SHOWN }
    const { client } = await grantee(service, [may])
    const id = await changed({ note: 'n', secret: 'hidden-1' }, { street: 's', zip: 'z', secret: 'hidden-2' })
    const { data } = await client.update(MODEL, id, { version: 0, note: 'n2' }, MERGE)
    expect(data).toMatchObject({ version: 2, street: 's', note: 'n2' })
    expect(JSON.stringify(data)).not.toMatch(/hidden|zip/)
    expect(await root.read(MODEL, id)).toMatchObject({ zip: 'z', secret: 'hidden-2', note: 'n2' })
  })

  /** Answers a conflict of a user who may write a field and not read it. Returns what is stored then. */
  async function resolveHalfSeen(connectClient = connect) {
    const may = { model: MODEL, canRead: true, canUpdate: true, readable: SHOWN }
    const { username } = await grantee(service, [{ ...may, writable: [...SHOWN, 'secret'] }])
    const places = connectClient(service.url, { username, password: PASSWORD }).model(MODEL)
    const id = await changed({ note: 'n', secret: 'before' }, { note: 'theirs', secret: 'of an admin' })
    const values = { version: 0, note: 'ours', secret: 'ours' }
    const update = places.update(id, values, { onConflict: () => ({ note: 'both' }) })
    const result = await update.catch((error: unknown) => error)
    return { places, id, result, stored: await root.read(MODEL, id) }
  }

  test('the client never overwrites a hidden change with the answer of onConflict', async () => {
    const { places, id, result, stored } = await resolveHalfSeen()
    expect(result).toBeInstanceOf(ConflictError)
    expect(stored).toMatchObject({ version: 1, note: 'theirs', secret: 'of an admin' })
    const { note } = await places.update(
      id,
      { version: 0, note: 'ours' },
      { onConflict: () => ({ note: 'both' }) },
    )
    expect(note).toBe('both')
  })

  test('the mutant that answers a conflict of fields that the user cannot see overwrites one', async () => {
    const { stored } = await resolveHalfSeen((await importMutantClient(OVERWRITING_UNSEEN)).connect)
    expect(stored).toMatchObject({ version: 2, note: 'both', secret: 'ours' })
  })

  test('the error of a hidden computed field tells neither its name nor its text', async () => {
    const { client, id, username } = await grantee(service, [
      { model: MODEL, canRead: true, canCreate: true, canUpdate: true, readable: SHOWN, writable: SHOWN },
    ])
    const { data } = await root.create(MODEL, { note: 'n', secret: 'hidden-1' })
    for (const note of ['refused', 'long note'])
      for (const call of [
        () => client.create(MODEL, { note }),
        () => client.update(MODEL, data.id, { version: 0, note }),
      ]) {
        const error = await catchError(call())
        expect(error.kind).toBe('invalid')
        expect(JSON.stringify([error.message, error.details])).not.toMatch(/checked|secret|hidden/)
      }
    // Permissions that take the field for a visible one are caught.
    const { catalog, authorizer } = service.app
    const principal = await authorizer.resolvePrincipal({ id, username, name: username, version: 0 })
    const permissions = new NamingPermissions(
      catalog,
      (model) => principal.permissions?.of(model).grants ?? [],
    )
    const naming = recordsForPrincipal(service.app, { ...principal, permissions })
    const named = await catchError(naming.update(MODEL, data.id, { version: 0, note: 'refused' }))
    expect(JSON.stringify(named.details)).toMatch(/checked.*hidden-1/)
    const shown = await catchError(root.create(MODEL, { note: 'refused', secret: 'known' }))
    expect(shown.details.errors).toEqual({
      checked: 'cannot be computed from these values: the secret is known',
    })
  })

  test('a merge group with hidden fields is a conflict, whether or not a hidden one changed', async () => {
    const may = { model: MODEL, canRead: true, canUpdate: true, readable: SHOWN, writable: SHOWN }
    const { client } = await grantee(service, [may])
    const inside = await changed({ street: 's' }, { zip: 'hidden' })
    const outside = await changed({ street: 's' }, { secret: 'hidden' })
    const ask = (id: number) => catchError(client.update(MODEL, id, { version: 0, street: 's2' }, MERGE))
    const [first, second] = [told(await ask(inside)), told(await ask(outside))]
    expect(first).toEqual(second)
    const field = { base: 's', ours: 's2', theirs: 's', verdict: 'ours' }
    expect(first).toEqual({ kind: 'conflict', fields: { street: field }, baseKnown: true, mergeable: false })
  })

  test('a field that is writable but not readable is never merged', async () => {
    const writable = [...SHOWN, 'secret']
    const may = { model: MODEL, canRead: true, canUpdate: true, readable: SHOWN, writable }
    const { client } = await grantee(service, [may])
    const touched = await changed({ secret: 'hidden' }, { secret: 'guess' })
    const untouched = await changed({ secret: 'hidden' }, { zip: 'z' })
    const ask = (id: number) => catchError(client.update(MODEL, id, { version: 0, secret: 'guess' }, MERGE))
    const [first, second] = [told(await ask(touched)), told(await ask(untouched))]
    expect(first).toEqual(second)
    expect(first).toMatchObject({ kind: 'conflict', fields: {}, mergeable: false })
  })

  test('a merge from a version that the user may not see is a conflict without a base, also for a patch', async () => {
    const may = { model: MODEL, canRead: true, canUpdate: true, condition: `region = 'mine'` }
    const { client } = await grantee(service, [may])
    const id = await changed(
      { region: 'other', facts: { past: 'hidden' } },
      { region: 'mine', facts: { now: 1 } },
    )
    const note = await catchError(client.update(MODEL, id, { version: 0, note: 'n' }, MERGE))
    expect(told(note)).toMatchObject({ kind: 'conflict', baseKnown: false, mergeable: false })
    const options = { ...MERGE, patch: true, ifMatch: 0 }
    const patch = await catchError(client.update(MODEL, id, { facts: { more: 2 } }, options))
    expect(told(patch)).toMatchObject({
      kind: 'stale-match',
      fields: { facts: { ours: { more: 2 }, theirs: { now: 1 }, verdict: 'clash' } },
    })
    expect(JSON.stringify(patch.details)).not.toContain('hidden')
  })

  test('a merge needs permission to update the record as it is now', async () => {
    const may = [
      { model: MODEL, canRead: true },
      { model: MODEL, canRead: true, canUpdate: true, condition: `region = 'mine'` },
    ]
    const { client } = await grantee(service, may)
    const id = await changed({ region: 'mine' }, { region: 'other' })
    const error = await catchError(client.update(MODEL, id, { version: 0, note: 'n' }, MERGE))
    expect(error.kind).toBe('forbidden')
  })

  const team = async (name: string) => ({ id: (await root.create(TEAM, { name })).data.id })
  const mayOfTeams = (condition: string) => [
    { model: MODEL, canRead: true, canUpdate: true },
    { model: TEAM, canRead: true, condition },
  ]

  test('a merge does not replace a hidden related record that others removed', async () => {
    const [hidden, seen, other] = [await team('hidden'), await team('seen'), await team('other')]
    const { client } = await grantee(service, mayOfTeams("name <> 'hidden'"))
    const id = await changed({ team: hidden, teams: [hidden, seen] }, { team: null, teams: [seen] })
    for (const data of [{ team: seen }, { teams: [seen, other] }]) {
      const error = await catchError(client.update(MODEL, id, { version: 0, ...data }, MERGE))
      expect(told(error)).toMatchObject({ kind: 'conflict', mergeable: false })
      expect(JSON.stringify(told(error))).not.toContain(`"id":${hidden.id}`)
    }
    expect(await root.read(MODEL, id)).toMatchObject({ version: 1, team: null, teams: [seen] })
  })

  test('a merge does not replace a deleted related record that others removed', async () => {
    const [gone, seen, other] = [await team('n1'), await team('n2'), await team('n3')]
    const { client } = await grantee(service, mayOfTeams("name like 'n'"))
    const id = await changed({ team: gone, teams: [gone, seen] }, { team: null, teams: [seen] })
    await root.remove(TEAM, gone.id)
    for (const data of [{ team: seen }, { teams: [seen, other] }])
      expect((await catchError(client.update(MODEL, id, { version: 0, ...data }, MERGE))).kind).toBe(
        'conflict',
      )
  })

  test('a merge keeps unchanged hidden related records', async () => {
    const [hidden, seen, other] = [await team('hidden'), await team('seen'), await team('other')]
    const { client } = await grantee(service, mayOfTeams("name <> 'hidden'"))
    const id = await changed({ teams: [hidden, seen] }, { note: 'theirs' })
    await client.update(MODEL, id, { version: 0, teams: [seen, other] }, MERGE)
    expect(await root.read(MODEL, id)).toMatchObject({
      version: 2,
      note: 'theirs',
      teams: [hidden, seen, other],
    })
  })
})
