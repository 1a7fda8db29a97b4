import type { Criteria } from './criteria.js'
import type { Field, Relation } from '../values/field.js'
import type { Model } from '../definition/model.js'

/**
 * The parts of the models and records that a user may see. Hidden parts behave as if they did not exist: requests cannot name a hidden
 * field, a masked field is null, and a hidden related record is missing. The Catalog is the visibility of users who may see everything.
 */
export interface Visibility {
  getTarget(relation: Relation): Model
  /** Finds the field of this name if the user may read it in at least some records. */
  findReadable(model: Model, name: string): Field | undefined
  /** The user may name the field in a write. */
  isVisible(model: Model, field: Field): boolean
  /** The user may write the field in at least some records. */
  canWrite(model: Model, field: Field): boolean
  /** The related records of this model that the user may see; undefined means all. */
  visibleRecords(model: Model): Criteria | undefined
  /** The visible records whose value of this field the user may read; undefined means all. */
  mask(model: Model, field: Field): Criteria | undefined
}
