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
 * Builds the rest of a document. With `models`, it describes these alone, without operations that do not belong to a model. Works in pieces, so
 * that the memory for one model is free before the next, and lets other requests run in between.
 */
export async function buildDocumentRest(
  app: App,
  principal: Principal,
  frame: DocumentFrame,
  models?: readonly Model[],
): Promise<Buffer> {
  const options = createSchemaOptions(app, principal, frame)
  const described = models ?? sortByName(listPermittedModels(app, principal))
  const general = models ? [] : describeGeneralPaths(frame, principal)
  const paths = [...general]
  const schemas: string[] = []
  const outputTargets = new Set<Model>()
  const inputTargets = new Set<Model>()
  const pause = createPause()
  for (const model of described) {
    const part = buildModelPart(frame.templates, principal, options, model)
    paths.push(...part.paths)
    schemas.push(...part.schemas)
    for (const target of part.outputTargets) outputTargets.add(target)
    for (const target of part.inputTargets) inputTargets.add(target)
    await pause()
  }
  for (const model of sortByName(outputTargets))
    schemas.push(describeEntry(`${toComponentName(model.name)}Reference`, describeReference(options, model)))
  await pause()
  for (const model of sortByName(inputTargets)) {
    schemas.push(describeEntry(`${toComponentName(model.name)}Input`, describeRelatedInput(options, model)))
    await pause()
  }
  const groups = models ? [] : listGroups(frame, principal)
  return joinPieces([
    stripBraces({
      info: describeInfo(frame),
      security: listSecurity(frame),
      tags: listTags(groups, described),
    }),
    ',"paths":{',
    ...separate(paths),
    '},"components":{"schemas":{',
    ...separate([...schemas, stripBraces({ ...SHARED_SCHEMAS, ...describeErrorSchemas() })]),
    '},',
    stripBraces(describeSharedComponents(frame)),
    '}}',
  ])
}

function createSchemaOptions(app: App, principal: Principal, { options }: DocumentFrame): SchemaOptions {
  return {
    visibility: getVisibility(app, principal),
    prefix: SCHEMA_PREFIX,
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
    responses: { ...templates.shared.responses, ...describeErrorResponses() },
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

function separate(entries: readonly string[]): readonly string[] {
  return entries.flatMap((entry, index) => (index === 0 ? [entry] : [',', entry]))
}

/** Writes the pieces into one buffer, without a text of the whole. */
function joinPieces(pieces: readonly string[]): Buffer {
  const buffer = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0))
  let at = 0
  for (const piece of pieces) at += buffer.write(piece, at)
  return buffer
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
