// Permissions tell for each model whether the user sees whole records. A write answers such a user from memory, and any other one by a read.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildGrant, type Permission } from '../../src/model/access/permission-record.js'
import { Permissions, type Grant } from '../../src/model/access/permissions.js'
import type { Model } from '../../src/model/definition/model.js'
import { selectFullRecord } from '../../src/model/query/selection.js'
import type { Principal } from '../../src/service/context/principal.js'
import { recordsForPrincipal } from '../../src/service/records/records.js'
import { compileSelection } from '../../src/store/sql/select.js'
import { SeeingPermissions } from '../mutants/permissions.js'
import { identityIn, onEveryEngine, startService, type Service } from '../targets.js'

const ACTIONS = new Set(['read', 'create', 'update'] as const)
const ALL: Permission = { model: '*', actions: ACTIONS, condition: null, readable: null, writable: null }
const PEOPLE: Permission = { ...ALL, model: 'rel.Person' }
const COMPANIES: Permission = { ...ALL, model: 'rel.Company' }

/** Sets of permissions, and whether they show whole records of `rel.Person`, which refers to companies, circles, badges and users. */
const CASES: readonly (readonly [title: string, permissions: readonly Permission[], isWhole: boolean])[] = [
  ['all models', [ALL], true],
  ['nothing', [], false],
  ['people without what they refer to', [PEOPLE], false],
  ['some people', [ALL].map((each) => ({ ...each, condition: `self.id > 0`, model: 'rel.*' })), false],
  ['all models, and some people besides', [ALL, { ...PEOPLE, condition: 'self.id > 0' }], true],
  ['some fields of people', [{ ...PEOPLE, readable: ['name', 'born'] }, COMPANIES], false],
  ['all fields, and some besides', [{ ...PEOPLE, readable: ['name'] }, ALL], true],
]

onEveryEngine((engine) => {
  let service: Service
  let admin: Principal

  beforeAll(async () => {
    service = await startService(engine)
    admin = await service.app.authorizer.resolvePrincipal(await identityIn(service))
  })
  afterAll(async () => service.close())

  const toGrants =
    (permissions: readonly Permission[]) =>
    (model: Model): Grant[] =>
      permissions.flatMap((each) => buildGrant(service.app.catalog, model, each, {}) ?? [])

  test.each(CASES)('permissions for %s', (_, permissions, isWhole) => {
    const { catalog, tables, db } = service.app
    const granted = new Permissions(catalog, toGrants(permissions))
    const model = catalog.get('rel.Person')
    expect([granted.seesWhole(model), granted.seesWhole(model)]).toEqual([isWhole, isWhole])
    const { byId, params } = compileSelection(db.dialect, selectFullRecord(granted, model))
    const isSameRead = byId === tables.of(model).full.byId && params.length === 0
    expect(isSameRead && granted.of(model).criteriaFor('read') === undefined).toBe(isWhole)
  })

  /** True if the answer to a create leaves out a field that the user may write and not read. */
  async function hidesField(permissions: Permissions): Promise<boolean> {
    const records = recordsForPrincipal(service.app, { ...admin, permissions })
    const { data } = await records.create('crm.Contact', { firstName: 'a', lastName: 'b' })
    return data['firstName'] === 'a' && !Object.hasOwn(data, 'lastName')
  }

  test('the answer to a write has no hidden field, and permissions that see everything are caught', async () => {
    const grants = toGrants([{ ...ALL, readable: ['firstName'] }])
    expect(await hidesField(new Permissions(service.app.catalog, grants))).toBe(true)
    expect(await hidesField(new SeeingPermissions(service.app.catalog, grants))).toBe(false)
  })
})
