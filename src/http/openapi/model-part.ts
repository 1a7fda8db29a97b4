// The part of an OpenAPI document that describes one model: its paths and schemas, as far as the user may use them.
import {
  describeCreate,
  describeItem,
  describeRecord,
  describeUpdate,
  listInputTargets,
  listOutputTargets,
  type SchemaOptions,
} from '../../formats/json-schema.js'
import { toComponentName } from '../../formats/component-name.js'
import type { PermissionAction } from '../../model/access/permissions.js'
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import type { Visibility } from '../../model/query/visibility.js'
import type { JsonObject } from '../../model/values/value.js'
import type { Principal } from '../../service/context/principal.js'
import { listActions } from '../../service/access/request-checks.js'
import {
  COUNT_SCHEMA,
  describeEnvelope,
  describeList,
  MODEL_COMPONENT,
  refTo,
  type BodyDocs,
} from '../route/documentation.js'
import { buildBodyExample } from './examples.js'
import {
  describeOperation,
  MODEL_NAME,
  shareParts,
  toExamplePlaceholder,
  toPathTemplate,
  type DocumentedRoute,
  type OperationOptions,
  type SharedParts,
} from './operations.js'
import { describeFileField } from './parameters.js'

export const SCHEMA_PREFIX = '#/components/schemas/'

/** An operation on any model. */
export interface OperationTemplate {
  readonly route: DocumentedRoute
  /** JSON text. Placeholders are at the odd indexes. */
  readonly pieces: readonly string[]
  /** Endings of the schemas that the operation refers to; empty for the record itself. */
  readonly schemas: readonly string[]
}

export interface ModelTemplates {
  /** The operations on models by path. */
  readonly byPath: ReadonlyMap<string, readonly OperationTemplate[]>
  readonly shared: SharedParts
  /** Responses of a model by their endings, as the pieces of a template. */
  readonly responses: ReadonlyMap<string, readonly string[]>
}

/** Splitting by a group keeps the placeholders. */
const PLACEHOLDER = /(\{Model\}|\{model\}|"\{example \w+\}")/

export function buildModelTemplates(
  routes: readonly DocumentedRoute[],
  options: OperationOptions,
): ModelTemplates {
  const byPath = new Map<string, OperationTemplate[]>()
  const shared: SharedParts = { responses: {}, requestBodies: {}, modelResponses: {} }
  for (const route of routes) {
    const path = toPathTemplate(route.path)
    const text = JSON.stringify(shareParts(route, describeOperation(route, options), shared))
    const refs = [...text.matchAll(/(?:schemas|responses)\/\{Model\}(\w*)/g)].map((match) => match[1] ?? '')
    const template = { route, pieces: text.split(PLACEHOLDER), schemas: [...new Set(refs)] }
    byPath.set(path, [...(byPath.get(path) ?? []), template])
  }
  const responses = Object.entries(shared.modelResponses).map(
    ([ending, response]) => [ending, JSON.stringify(response).split(PLACEHOLDER)] as const,
  )
  return { byPath, shared, responses: new Map(responses) }
}

export interface ModelPart {
  /** Entries of `paths`, as JSON text. */
  readonly paths: readonly string[]
  /** Entries of `components.schemas`, as JSON text. */
  readonly schemas: readonly string[]
  /** Entries of `components.responses`, as JSON text. */
  readonly responses: readonly string[]
  /** The models whose records the schemas contain as references. */
  readonly outputTargets: readonly Model[]
  /** The models whose records requests may contain. */
  readonly inputTargets: readonly Model[]
}

/** Builds the part for one model. It is empty if the user may use no operation. */
export function buildModelPart(
  templates: ModelTemplates,
  principal: Principal,
  options: SchemaOptions,
  model: Model,
): ModelPart {
  const { visibility } = options
  const actions = listUsableActions(principal, visibility, model)
  const files = [...model.fields.values()].filter(
    (field) => field.type === 'binary' && visibility.isVisible(model, field),
  )
  const fill = createFiller(visibility, model)
  const needed = new Set<string>()
  const paths: string[] = []
  for (const [path, operations] of templates.byPath) {
    const usable = operations.filter(({ route }) => isUsable(route, actions, files))
    if (usable.length === 0) continue
    for (const name of usable.flatMap(({ schemas }) => schemas)) needed.add(name)
    const methods = usable.map(({ route, pieces }) => `"${route.method.toLowerCase()}":${fill(pieces)}`)
    const parameters = path.includes('{field}')
      ? [`"parameters":${JSON.stringify([describeFileField(files.map(({ name }) => name))])}`]
      : []
    paths.push(`"${path.replace(MODEL_NAME, model.name)}":{${[...parameters, ...methods].join(',')}}`)
  }
  const component = toComponentName(model.name)
  const responses = [...templates.responses]
    .filter(([ending]) => needed.has(ending))
    .map(([ending, pieces]) => `"${component}${ending}":${fill(pieces)}`)
  return { paths, responses, ...describeModelSchemas(options, model, needed) }
}

function isUsable(
  { docs }: DocumentedRoute,
  actions: ReadonlySet<PermissionAction>,
  files: readonly Field[],
): boolean {
  if (docs.needsFile === true && files.length === 0) return false
  return (
    docs.permits === undefined || docs.permits.some((list) => list.every((action) => actions.has(action)))
  )
}

/** Nobody can create a record without a value for each required field. */
export function listUsableActions(
  principal: Principal,
  visibility: Visibility,
  model: Model,
): ReadonlySet<PermissionAction> {
  const actions = new Set(listActions(principal, model))
  const canCreate =
    model.createInstruction === undefined &&
    model.requiredInputs.every((field) => visibility.canWrite(model, field))
  if (!canCreate) actions.delete('create')
  return actions
}

/** Returns a function that replaces the placeholders of a template. */
function createFiller(visibility: Visibility, model: Model): (pieces: readonly string[]) => string {
  const values = new Map([
    [MODEL_COMPONENT, toComponentName(model.name)],
    [MODEL_NAME, model.name],
    ...EXAMPLE_KINDS.map((kind): [string, string] => [
      JSON.stringify(toExamplePlaceholder(kind)),
      JSON.stringify(buildBodyExample(kind, visibility, model)),
    ]),
  ])
  return (pieces) => {
    let text = ''
    for (let index = 0; index < pieces.length; index++) {
      const piece = pieces[index] ?? ''
      text += index % 2 === 0 ? piece : (values.get(piece) ?? '')
    }
    return text
  }
}

const EXAMPLE_KINDS: readonly NonNullable<BodyDocs['example']>[] = ['create', 'update', 'patch', 'mass']

type DescribedSchemas = Pick<ModelPart, 'schemas' | 'outputTargets' | 'inputTargets'>

/** The schemas of answers refer to those of records. */
const SCHEMAS_INSIDE: Readonly<Record<string, string>> = { Page: 'Item', Saved: 'Item', Result: '' }

function describeModelSchemas(
  options: SchemaOptions,
  model: Model,
  used: ReadonlySet<string>,
): DescribedSchemas {
  const { visibility } = options
  const needed = new Set([...used, ...[...used].flatMap((name) => SCHEMAS_INSIDE[name] ?? [])])
  const component = toComponentName(model.name)
  const schemas = [...needed].map((suffix) => {
    const describe = DESCRIBERS[suffix]
    if (!describe) throw new Error(`a route refers to the unknown schema ${MODEL_COMPONENT}${suffix}`)
    return `"${component}${suffix}":${JSON.stringify(describe(options, model))}`
  })
  const hasOutput = needed.has('') || needed.has('Item')
  const hasInput = needed.has('Create') || needed.has('Update')
  return {
    schemas,
    outputTargets: hasOutput ? listOutputTargets(visibility, model) : [],
    inputTargets: hasInput ? listInputTargets(visibility, model) : [],
  }
}

/** The schemas of a model by the ending of their names. */
const DESCRIBERS: Readonly<Record<string, (options: SchemaOptions, model: Model) => JsonObject>> = {
  '': describeRecord,
  Item: describeItem,
  Create: describeCreate,
  Update: describeUpdate,
  Page: (_, model) => ({
    type: 'object',
    required: ['status', 'offset', 'data'],
    properties: {
      status: { type: 'integer', const: 0 },
      offset: COUNT_SCHEMA,
      total: { ...COUNT_SCHEMA, description: 'The number of all matches. Absent with `count=none`.' },
      data: describeList(refTo(`${toComponentName(model.name)}Item`)),
    },
  }),
  Result: (_, model) => describeEnvelope(describeList(refTo(toComponentName(model.name)))),
  Saved: (_, model) => describeEnvelope(describeList(refTo(`${toComponentName(model.name)}Item`))),
}
