// What somebody may do: the grants of their roles, model by model. Grants add up; where there is none, nothing is permitted.
import type { Catalog } from '../catalog/catalog.js'
import { NOTHING, type Criteria } from '../query/criteria.js'
import type { Field, Relation } from '../values/field-types.js'
import { isReadable, USER_MODEL, type Model } from '../definition/model.js'
import { ID, VERSION } from '../query/path.js'
import type { Sight } from '../query/visibility.js'

export const PERMITTED_ACTIONS = ['read', 'create', 'update', 'remove', 'export'] as const
export type PermittedAction = (typeof PERMITTED_ACTIONS)[number]

/** One permission, as far as it concerns one model. */
export interface Grant {
  readonly actions: ReadonlySet<PermittedAction>
  /** The records that it is for; all of them if undefined. */
  readonly where: Criteria | undefined
  /** The own fields that the condition looks at; undefined if it looks further, at neighbours or at the user's record. */
  readonly looksAt: ReadonlySet<string> | undefined
  /** The fields that it is for, to read and to write; all of them if undefined. */
  readonly readable: ReadonlySet<string> | undefined
  readonly writable: ReadonlySet<string> | undefined
}

/** The grants of one model. */
export class ModelRights {
  readonly #byAction: ReadonlyMap<PermittedAction, readonly Grant[]>
  readonly #rows: ReadonlyMap<PermittedAction, Criteria | undefined>
  readonly #masks = new Map<string, Criteria>()

  constructor(readonly grants: readonly Grant[]) {
    const of = (action: PermittedAction) => grants.filter(({ actions }) => actions.has(action))
    this.#byAction = new Map(PERMITTED_ACTIONS.map((action) => [action, of(action)]))
    this.#rows = new Map(PERMITTED_ACTIONS.map((action) => [action, this.#anyOf(this.for(action))]))
  }

  /** Whether the model may be known at all. */
  get isKnown(): boolean {
    return this.grants.length > 0
  }

  may(action: PermittedAction): boolean {
    return this.for(action).length > 0
  }

  for(action: PermittedAction): readonly Grant[] {
    return this.#byAction.get(action) ?? []
  }

  /** The records that the action is permitted for; all of them if undefined. */
  rows(action: PermittedAction): Criteria | undefined {
    return this.#rows.get(action)
  }

  reads(name: string): boolean {
    return this.for('read').some(({ readable }) => !readable || readable.has(name))
  }

  writes(name: string): boolean {
    const writing = [...this.for('create'), ...this.for('update')]
    return writing.some(({ writable }) => !writable || writable.has(name))
  }

  /** The records in which the field may be read, among those that may be read at all. */
  mask(name: string): Criteria | undefined {
    const showing = this.#showing(name)
    return showing.length === this.for('read').length ? undefined : this.#anyOf(showing)
  }

  /** The same among all records, whether they may be read or not. */
  shownIn(name: string): Criteria | undefined {
    return this.#anyOf(this.#showing(name))
  }

  #showing(name: string): readonly Grant[] {
    return this.for('read').filter(({ readable }) => !readable || readable.has(name))
  }

  /** The same criteria for the same grants: what is masked alike is looked at once. */
  #anyOf(grants: readonly Grant[]): Criteria | undefined {
    const criteria = new Set<Criteria>()
    for (const { where } of grants) {
      if (!where) return undefined
      criteria.add(where)
    }
    if (criteria.size === 0) return NOTHING
    const key = grants.map((grant) => this.grants.indexOf(grant)).join()
    const known = this.#masks.get(key)
    const [first, ...others] = criteria
    const any = known ?? (first && others.length === 0 ? first : { kind: 'or', criteria: [...criteria] })
    this.#masks.set(key, any)
    return any
  }
}

/**
 * The rights of somebody who may not do everything, and with them all that they see. Whoever may read a record is told who made and
 * changed it: users are seen as neighbours by everybody, by their names alone.
 */
export class Rights implements Sight {
  readonly #known = new Map<Model, ModelRights>()

  constructor(
    readonly catalog: Catalog,
    private readonly grantsOf: (model: Model) => readonly Grant[],
  ) {}

  of(model: Model): ModelRights {
    const known = this.#known.get(model) ?? new ModelRights(this.grantsOf(model))
    this.#known.set(model, known)
    return known
  }

  target(relation: Relation): Model {
    return this.catalog.target(relation)
  }

  readable(model: Model, name: string): Field | undefined {
    const field = model.fields.get(name)
    if (!field || !isReadable(field)) return undefined
    if (!this.of(model).reads(name) && !isNameOfUser(model, name)) return undefined
    return this.#leadsSomewhere(field) ? field : undefined
  }

  knows(model: Model, field: Field): boolean {
    const isRead = this.of(model).reads(field.name) || isNameOfUser(model, field.name)
    // Files and secrets are not read with a record, and may be written.
    return (isRead || this.writes(model, field)) && this.#leadsSomewhere(field)
  }

  writes(model: Model, field: Field): boolean {
    return this.catalog.writes(model, field) && this.of(model).writes(field.name)
  }

  seen(model: Model): Criteria | undefined {
    return model.name === USER_MODEL ? undefined : this.of(model).rows('read')
  }

  mask(model: Model, field: Field): Criteria | undefined {
    if (field === ID || field === VERSION || isNameOfUser(model, field.name)) return undefined
    const rights = this.of(model)
    // Users are neighbours that everybody sees, also those who may not read them.
    return model.name === USER_MODEL ? rights.shownIn(field.name) : rights.mask(field.name)
  }

  /** A relation to what may never be seen would tell nothing but that there is such a model. */
  #leadsSomewhere({ relation }: Field): boolean {
    if (!relation) return true
    const rights = this.of(this.catalog.target(relation))
    if (relation.mappedBy !== undefined) return rights.reads(relation.mappedBy)
    return relation.target === USER_MODEL || rights.may('read')
  }
}

function isNameOfUser({ name: model, nameField }: Model, name: string): boolean {
  return model === USER_MODEL && name === nameField
}
