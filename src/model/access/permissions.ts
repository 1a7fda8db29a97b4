// The permissions of a user: the grants of their roles for each model. Grants add up; without a grant nothing is permitted.
import { isDeepStrictEqual } from 'node:util'
import type { Catalog } from '../catalog/catalog.js'
import { MATCH_NONE, type Criteria } from '../query/criteria.js'
import type { Field, Relation } from '../values/field.js'
import { isReadable, USER_MODEL, type Model } from '../definition/model.js'
import { ID_FIELD, VERSION_FIELD } from '../query/path.js'
import { selectFullRecord } from '../query/selection.js'
import type { Visibility } from '../query/visibility.js'

export const PERMISSION_ACTIONS = ['read', 'create', 'update', 'remove', 'export'] as const
export type PermissionAction = (typeof PERMISSION_ACTIONS)[number]

/** One permission, applied to one model. */
export interface Grant {
  readonly actions: ReadonlySet<PermissionAction>
  /** The records that the grant applies to; undefined means all. */
  readonly where: Criteria | undefined
  /** The fields of the record that the condition compares; undefined if it also uses related records or the user's record. */
  readonly conditionFields: ReadonlySet<string> | undefined
  /** The fields that the grant applies to; undefined means all. */
  readonly readable: ReadonlySet<string> | undefined
  readonly writable: ReadonlySet<string> | undefined
}

/** The grants of one model. */
export class ModelPermissions {
  readonly #byAction: ReadonlyMap<PermissionAction, readonly Grant[]>
  readonly #criteria: ReadonlyMap<PermissionAction, Criteria | undefined>
  readonly #masks = new Map<string, Criteria>()
  readonly #unlimitedActions: ReadonlySet<PermissionAction>
  /** True if a grant applies to some records only. */
  readonly hasConditions: boolean

  constructor(readonly grants: readonly Grant[]) {
    const of = (action: PermissionAction) => grants.filter(({ actions }) => actions.has(action))
    this.#byAction = new Map(PERMISSION_ACTIONS.map((action) => [action, of(action)]))
    this.#criteria = new Map(
      PERMISSION_ACTIONS.map((action) => [action, this.#combineGrants(this.grantsFor(action))]),
    )
    const unlimited = grants.filter(({ where, writable }) => !where && !writable)
    this.#unlimitedActions = new Set(unlimited.flatMap(({ actions }) => [...actions]))
    this.hasConditions = grants.some(({ where }) => where !== undefined)
  }

  /** True if one grant permits the action for all records and all fields that it writes. */
  isUnlimited(action: PermissionAction): boolean {
    return this.#unlimitedActions.has(action)
  }

  /** The user may know that the model exists. */
  get isVisible(): boolean {
    return this.grants.length > 0
  }

  can(action: PermissionAction): boolean {
    return this.grantsFor(action).length > 0
  }

  grantsFor(action: PermissionAction): readonly Grant[] {
    return this.#byAction.get(action) ?? []
  }

  /** The records that the action is permitted for; undefined means all. */
  criteriaFor(action: PermissionAction): Criteria | undefined {
    return this.#criteria.get(action)
  }

  canRead(name: string): boolean {
    return this.grantsFor('read').some(({ readable }) => !readable || readable.has(name))
  }

  canWrite(name: string): boolean {
    const writing = [...this.grantsFor('create'), ...this.grantsFor('update')]
    return writing.some(({ writable }) => !writable || writable.has(name))
  }

  /** Among the records that the user may read, those whose value of the field they may read. Undefined means all. */
  mask(name: string): Criteria | undefined {
    const showing = this.#findReadGrants(name)
    return showing.length === this.grantsFor('read').length ? undefined : this.#combineGrants(showing)
  }

  /** Among all records, those whose value of the field the user may read. Undefined means all. */
  maskAmongAll(name: string): Criteria | undefined {
    return this.#combineGrants(this.#findReadGrants(name))
  }

  #findReadGrants(name: string): readonly Grant[] {
    return this.grantsFor('read').filter(({ readable }) => !readable || readable.has(name))
  }

  /** Returns the same object for the same grants, so that the database evaluates equal masks once. */
  #combineGrants(grants: readonly Grant[]): Criteria | undefined {
    const criteria = new Set<Criteria>()
    for (const { where } of grants) {
      if (!where) return undefined
      criteria.add(where)
    }
    if (criteria.size === 0) return MATCH_NONE
    const key = grants.map((grant) => this.grants.indexOf(grant)).join()
    const known = this.#masks.get(key)
    const [first, ...others] = criteria
    const any = known ?? (first && others.length === 0 ? first : { kind: 'or', criteria: [...criteria] })
    this.#masks.set(key, any)
    return any
  }
}

/**
 * The permissions of a user who is no administrator, and the visibility that follows from them. Every user sees the names of other users
 * as related records, so that `createdBy` and `updatedBy` of a record are readable with the record.
 */
export class Permissions implements Visibility {
  readonly #cache = new Map<Model, ModelPermissions>()
  readonly #wholeModels = new Map<Model, boolean>()

  constructor(
    readonly catalog: Catalog,
    private readonly findGrants: (model: Model) => readonly Grant[],
  ) {}

  of(model: Model): ModelPermissions {
    const cached = this.#cache.get(model)
    if (cached) return cached
    const permissions = new ModelPermissions(this.findGrants(model))
    this.#cache.set(model, permissions)
    return permissions
  }

  /** True if the user sees every record of the model with all its fields, and the related records that these show. */
  seesWhole(model: Model): boolean {
    const known = this.#wholeModels.get(model)
    if (known !== undefined) return known
    const isWhole =
      this.of(model).criteriaFor('read') === undefined &&
      isDeepStrictEqual(selectFullRecord(this, model), selectFullRecord(this.catalog, model))
    this.#wholeModels.set(model, isWhole)
    return isWhole
  }

  getTarget(relation: Relation): Model {
    return this.catalog.getTarget(relation)
  }

  findReadable(model: Model, name: string): Field | undefined {
    const field = model.fields.get(name)
    if (!field || !isReadable(field)) return undefined
    if (!this.of(model).canRead(name) && !isUserNameField(model, name)) return undefined
    return this.#isTargetVisible(field) ? field : undefined
  }

  isVisible(model: Model, field: Field): boolean {
    const isRead = this.of(model).canRead(field.name) || isUserNameField(model, field.name)
    // Files and secrets are never read, but may be written.
    return (isRead || this.canWrite(model, field)) && this.#isTargetVisible(field)
  }

  canWrite(model: Model, field: Field): boolean {
    return this.catalog.canWrite(model, field) && this.of(model).canWrite(field.name)
  }

  visibleRecords(model: Model): Criteria | undefined {
    return model.name === USER_MODEL ? undefined : this.of(model).criteriaFor('read')
  }

  mask(model: Model, field: Field): Criteria | undefined {
    if (field === ID_FIELD || field === VERSION_FIELD || isUserNameField(model, field.name)) return undefined
    const permissions = this.of(model)
    // All users are visible as related records, so the mask must cover those that the user may not read.
    return model.name === USER_MODEL ? permissions.maskAmongAll(field.name) : permissions.mask(field.name)
  }

  /** Hides relations to models that the user may not read: they would only reveal that the model exists. */
  #isTargetVisible({ relation }: Field): boolean {
    if (!relation) return true
    const permissions = this.of(this.catalog.getTarget(relation))
    if (relation.mappedBy !== undefined) return permissions.canRead(relation.mappedBy)
    return relation.target === USER_MODEL || permissions.can('read')
  }
}

function isUserNameField({ name: model, nameField }: Model, name: string): boolean {
  return model === USER_MODEL && name === nameField
}
