// Builds the OpenAPI document that a user gets: the models, fields and operations that the user may use.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { toComponentName } from '../../formats/component-name.js'
import { describeReference, describeRelatedInput, type SchemaOptions } from '../../formats/json-schema.js'
import type { Model } from '../../model/definition/model.js'
import type { JsonObject } from '../../model/values/value.js'
import type { App } from '../../service/context/app.js'
import { getVisibility } from '../../service/context/context.js'
import type { Principal } from '../../service/context/principal.js'
import { listPermittedModels } from '../../service/access/request-checks.js'
import { OPERATION_GROUPS, type OperationGroup } from '../route/documentation.js'
import { describeErrorResponses, describeErrorSchemas } from './error-responses.js'
import { buildModelPart, buildModelTemplates, SCHEMA_PREFIX, type ModelTemplates } from './model-part.js'
import {
  describeOperation,
  isModelRoute,
  listSecuritySchemes,
  toPathTemplate,
  type DocumentedRoute,
  type OperationOptions,
} from './operations.js'
import { describeParameterComponents } from './parameters.js'
import { SHARED_SCHEMAS } from './shared-schemas.js'

/** Other requests run after this time. */
const MAX_BUSY_MS = 10

export interface DocumentOptions extends OperationOptions {
  /** The version of the package. */
  readonly version: string
  readonly refusesUnknownFields: boolean
}

/** The parts of all documents that depend on neither user nor models. */
export interface DocumentFrame {
  readonly options: DocumentOptions
  readonly generalRoutes: readonly DocumentedRoute[]
  readonly templates: ModelTemplates
}

export function createDocumentFrame(
  routes: readonly DocumentedRoute[],
  options: DocumentOptions,
): DocumentFrame {
  return {
    options,
    generalRoutes: routes.filter((route) => !isModelRoute(route)),
    templates: buildModelTemplates(routes.filter(isModelRoute), options),
  }
}

/** Returns the start of a document, which the rest follows. */
export function buildDocumentStart(baseUrl: string): string {
  return `{"openapi":"3.1.0","servers":${JSON.stringify([{ url: baseUrl }])},`
}

/**
 * Builds the rest of a document. With `models`, it describes these alone, without operations that do not belong to a model; an empty
 * list means these operations alone. Works in pieces, so that the memory for one model is free before the next, and lets other requests run in
 * between.
 */
export async function buildDocumentRest(
  app: Pick<App, 'catalog'>,
  principal: Principal,
  frame: DocumentFrame,
  models?: readonly Model[],
): Promise<Buffer> {
  const options = createSchemaOptions(app, principal, frame)
  const described = models ?? sortByName(listPermittedModels(app, principal))
  const hasGeneral = models === undefined || models.length === 0
  const paths = new EntryList()
  const schemas = new EntryList()
  const responses = new EntryList()
  paths.add(...(hasGeneral ? describeGeneralPaths(frame, principal) : []))
  const outputTargets = new Set<Model>()
  const inputTargets = new Set<Model>()
  const pause = createPause()
  for (const model of described) {
    const part = buildModelPart(frame.templates, principal, options, model)
    paths.add(...part.paths)
    schemas.add(...part.schemas)
    responses.add(...part.responses)
    for (const target of part.outputTargets) outputTargets.add(target)
    for (const target of part.inputTargets) inputTargets.add(target)
    await pause()
  }
  for (const model of sortByName(outputTargets))
    schemas.add(describeEntry(`${toComponentName(model.name)}Reference`, describeReference(options, model)))
  await pause()
  for (const model of sortByName(inputTargets)) {
    schemas.add(describeEntry(`${toComponentName(model.name)}Input`, describeRelatedInput(options, model)))
    await pause()
  }
  schemas.add(stripBraces({ ...SHARED_SCHEMAS, ...describeErrorSchemas() }))
  responses.add(stripBraces({ ...frame.templates.shared.responses, ...describeErrorResponses() }))
  const groups = hasGeneral ? listGroups(frame, principal) : []
  const start = {
    info: describeInfo(frame),
    security: listSecurity(frame),
    tags: listTags(groups, described),
  }
  return Buffer.concat([
    Buffer.from(`${stripBraces(start)},"paths":{`),
    ...paths.chunks,
    Buffer.from('},"components":{"schemas":{'),
    ...schemas.chunks,
    Buffer.from('},"responses":{'),
    ...responses.chunks,
    Buffer.from(`},${stripBraces(describeSharedComponents(frame))}}}`),
  ])
}

/** Entries of a JSON object, as bytes: texts of the whole document would take twice the memory. */
class EntryList {
  readonly chunks: Buffer[] = []

  add(...entries: readonly string[]): void {
    if (entries.length > 0)
      this.chunks.push(Buffer.from(`${this.chunks.length === 0 ? '' : ','}${entries.join(',')}`))
  }
}

function createSchemaOptions(
  app: Pick<App, 'catalog'>,
  principal: Principal,
  { options }: DocumentFrame,
): SchemaOptions {
  return {
    visibility: getVisibility(app, principal),
    prefix: SCHEMA_PREFIX,
    isBrief: true,
    refusesUnknownFields: options.refusesUnknownFields,
  }
}

function describeInfo({ options }: DocumentFrame): JsonObject {
  return {
    title: 'Verso',
    version: options.version,
    description:
      'Records over HTTP and JSON. This document has the models, fields and operations that your account may use.',
  }
}

function listSecurity({ options }: DocumentFrame): readonly JsonObject[] {
  return Object.keys(listSecuritySchemes(options)).map((name) => ({ [name]: [] }))
}

function describeSharedComponents({ options, templates }: DocumentFrame): JsonObject {
  return {
    ...describeParameterComponents(),
    requestBodies: templates.shared.requestBodies,
    securitySchemes: listSecuritySchemes(options),
  }
}

function describeGeneralPaths(
  { generalRoutes, options }: DocumentFrame,
  principal: Principal,
): readonly string[] {
  const paths = new Map<string, string[]>()
  for (const route of generalRoutes.filter((each) => isOpenTo(each, principal))) {
    const path = toPathTemplate(route.path)
    const operation = describeEntry(route.method.toLowerCase(), describeOperation(route, options))
    paths.set(path, [...(paths.get(path) ?? []), operation])
  }
  return [...paths].map(([path, operations]) => `${JSON.stringify(path)}:{${operations.join(',')}}`)
}

/** True unless the operation is for administrators and the user is none. */
function isOpenTo({ docs }: DocumentedRoute, { permissions }: Principal): boolean {
  return docs.access !== 'admin' || permissions === undefined
}

function listGroups({ generalRoutes }: DocumentFrame, principal: Principal): readonly OperationGroup[] {
  const used = generalRoutes.filter((route) => isOpenTo(route, principal)).map(({ docs }) => docs.group)
  return (Object.keys(OPERATION_GROUPS) as OperationGroup[]).filter((group) => used.includes(group))
}

function listTags(groups: readonly OperationGroup[], models: readonly Model[]): readonly JsonObject[] {
  return [
    ...groups.map((name) => ({ name, description: OPERATION_GROUPS[name] })),
    ...models.map(({ name, title }) => ({ name, description: title })),
  ]
}

function sortByName(models: Iterable<Model>): readonly Model[] {
  return [...models].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function describeEntry(name: string, value: JsonObject): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`
}

/** Returns the entries of an object as JSON text. */
function stripBraces(value: JsonObject): string {
  return JSON.stringify(value).slice(1, -1)
}

/** Returns a function that lets other requests run if the last pause was too long ago. */
function createPause(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < MAX_BUSY_MS) return
    await yieldToEventLoop()
    since = performance.now()
  }
}
