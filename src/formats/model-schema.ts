// The JSON Schema document of one model: the record as a read returns it, with the schemas of lists and requests beside it.
import type { PermissionAction } from '../model/access/permissions.js'
import type { Model } from '../model/definition/model.js'
import type { Visibility } from '../model/query/visibility.js'
import type { JsonObject } from '../model/values/value.js'
import { toComponentName } from './component-name.js'
import {
  describeCreate,
  describeItem,
  describeRecord,
  describeReference,
  describeRelatedInput,
  describeUpdate,
  IGNORED_NAME,
  IGNORED_SCHEMA,
  listInputTargets,
  listOutputTargets,
  RELATED_INPUT_NAME,
  RELATED_INPUT_SCHEMA,
} from './json-schema.js'

export interface SchemaDocumentOptions {
  /** The URL of the document. */
  readonly id: string
  /** The actions that the user may perform. */
  readonly actions: ReadonlySet<PermissionAction>
  readonly refusesUnknownFields: boolean
}

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'

/** `$defs` has `list` (a record in a page), `create` and `update` (the data of a request), and the schemas of related records. */
export function describeModelDocument(
  visibility: Visibility,
  model: Model,
  { id, actions, refusesUnknownFields }: SchemaDocumentOptions,
): JsonObject {
  const options = { visibility, prefix: '#/$defs/', refusesUnknownFields }
  const canSave = actions.has('create') || actions.has('update')
  const outputTargets = listOutputTargets(visibility, model)
  const inputTargets = canSave ? listInputTargets(visibility, model) : []
  return {
    $schema: DIALECT,
    $id: id,
    ...describeRecord(options, model),
    $defs: {
      list: describeItem(options, model),
      ...(actions.has('create') ? { create: describeCreate(options, model) } : {}),
      ...(actions.has('update') ? { update: describeUpdate(options, model) } : {}),
      ...describeTargets(outputTargets, 'Reference', (target) => describeReference(options, target)),
      ...describeTargets(inputTargets, 'Input', (target) => describeRelatedInput(options, target)),
      ...(canSave ? { [IGNORED_NAME]: IGNORED_SCHEMA, [RELATED_INPUT_NAME]: RELATED_INPUT_SCHEMA } : {}),
    },
  }
}

function describeTargets(
  targets: readonly Model[],
  suffix: string,
  describe: (target: Model) => JsonObject,
): JsonObject {
  return Object.fromEntries(
    targets.map((target) => [`${toComponentName(target.name)}${suffix}`, describe(target)]),
  )
}
