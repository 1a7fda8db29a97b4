// A deleted record is reverted whole or not at all, without revealing hidden related records.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Records } from '../../src/wire.js'
import { onEveryEngine, catchError, startService, type Service } from '../targets.js'
import { grantee, officeModels, PROJECT, rootOf, TEAM } from './office-fixture.js'

const ALL = { canRead: true, canCreate: true, canUpdate: true, canRemove: true }

onEveryEngine((engine) => {
  let service: Service
  let root: Records

  beforeAll(async () => {
    service = await startService(engine, { models: officeModels })
    root = rootOf(service)
  })
  afterAll(() => service.close())

  async function deletedProject(): Promise<{ id: number; team: number }> {
    const team = (await root.create(TEAM, { name: 'hidden' })).data.id
    const { id } = (await root.create(PROJECT, { name: 'p', team: { id: team } })).data
    await root.remove(PROJECT, id)
    return { id, team }
  }
  const back = { version: 1, to: 0 }

  test('a revert with a hidden related record is rejected with the same message as with a deleted one', async () => {
    const who = await grantee(service, [
      { model: PROJECT, ...ALL },
      { model: TEAM, canRead: true, condition: "name = 'open'" },
    ])
    const { id, team } = await deletedProject()
    const hidden = await catchError(who.client.revert(PROJECT, id, back))
    await root.remove(TEAM, team)
    const gone = await catchError(who.client.revert(PROJECT, id, back))
    expect(hidden).toMatchObject({ kind: 'forbidden', message: expect.not.stringContaining(TEAM) })
    expect([gone.kind, gone.message, gone.details.data]).toEqual([
      ...[hidden.kind, hidden.message, hidden.details.data],
    ])
  })

  test('a revert with a deleted related record names it to a user who may see everything', async () => {
    const { id, team } = await deletedProject()
    await root.remove(TEAM, team)
    const error = await catchError(root.revert(PROJECT, id, back))
    expect(error.kind).toBe('invalid')
    expect(JSON.stringify(error.details)).toContain(
      `refers to ${TEAM} ${team}, which does not exist any more`,
    )
  })

  test('a deleted record is reverted if all its related records are visible', async () => {
    const who = await grantee(service, [
      { model: PROJECT, ...ALL },
      { model: TEAM, canRead: true },
    ])
    const { id, team } = await deletedProject()
    const { data } = await who.client.revert(PROJECT, id, back)
    expect(data).toMatchObject({ id, version: 2, team: { id: team } })
  })
})
