import type { Criteria } from './criteria.js'
import type { Field, Relation } from '../values/field-types.js'
import type { Model } from '../definition/model.js'

/**
 * The models as somebody sees them. What may not be seen behaves like what is not there: a field cannot be named, or is null in
 * the records in which it is hidden; a neighbour is missing. A Catalog is the sight of those who may see everything.
 */
export interface Visibility {
  getTarget(relation: Relation): Model
  /** The field of that name, if it may be read in any record. */
  findReadable(model: Model, name: string): Field | undefined
  /** Whether it may be named where a record is written. */
  isVisible(model: Model, field: Field): boolean
  /** Whether it may be written in any record. */
  canWrite(model: Model, field: Field): boolean
  /** The neighbours of this model that may be seen; all of them if undefined. */
  visibleRecords(model: Model): Criteria | undefined
  /** The records in which the field is shown, among those that are seen; all of them if undefined. */
  mask(model: Model, field: Field): Criteria | undefined
}
