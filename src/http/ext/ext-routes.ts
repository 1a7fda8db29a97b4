// Registers the routes of the application below /ext. They have the guards, limits, headers and errors of all other routes.
import { pipeline, Readable, Transform } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { describeThrown, ConfigError, VersoError } from '../../errors.js'
import { callRouteInTask, guardProcess } from '../../service/background/background-task.js'
import type { UserSummary } from '../../model/definition/hooks.js'
import type { RecordsHandle } from '../../model/definition/typed-records.js'
import type { App } from '../../service/context/app.js'
import { SERVICE_PRINCIPAL } from '../../service/context/principal.js'
import { toUserSummary } from '../../service/hooks/hook-calls.js'
import { createRecordsHandle } from '../../service/hooks/records-handle.js'
import { concealSystemError } from '../../service/hooks/system-errors.js'
import type { DocumentedRoute } from '../openapi/operations.js'
import { buildHeaderList, setNoStore } from '../response/send.js'
import { refuseUnknownPaths } from '../route/errors.js'
import { requirePrincipal, runGuards } from '../route/guard.js'
import type { RouteContext } from '../route/resource.js'
import { ROUTE_TIMEOUT_MS, addRouteTimeout } from './route-timeout.js'
import { createBodyGuard, createRouteGuard, findRouteProblem } from './route-guard.js'
import { RouteDocuments } from './route-documents.js'
import type { RoutePlugin, VersoRequest } from './route-plugin.js'
import { formatSchemaErrors } from './schema-compilers.js'

const EXT_PREFIX = '/ext'

export interface ExtRouteContext extends RouteContext {
  /** The plugins of the installation. */
  readonly routes: readonly RoutePlugin[]
  /** The time until a route must answer. */
  readonly routeTimeoutMs?: number
}

/** Registers the plugins in a scope of their own. Throws one error with the problems of all of them. */
export async function addExtRoutes(
  base: FastifyInstance,
  context: ExtRouteContext,
  addDocumented: (route: DocumentedRoute) => void,
): Promise<void> {
  const { settings, routes } = context
  const problems: string[] = []
  await base.register(
    async (scope) => {
      addScopeHooks(scope, context)
      const documents = new RouteDocuments(settings.basePath)
      scope.addHook('onRoute', function (route) {
        const problem = findRouteProblem(route, `${settings.basePath}${EXT_PREFIX}`)
        if (problem === undefined) documents.add(route, () => this.getSchemas())
        // Fastify adds a HEAD route to each GET route.
        else if (route.method !== 'HEAD' || !problems.includes(problem.replace('HEAD', 'GET')))
          problems.push(problem)
      })
      const failures = new Map<unknown, string>()
      for (const plugin of routes) await registerPlugin(scope, plugin, failures)
      problems.push(...failures.values())
      if (problems.length > 0) throw new ConfigError('The routes cannot be served', problems)
      for (const route of documents.list()) addDocumented(route)
      const removeGuard = guardProcess(context.app.log)
      scope.addHook('onClose', async () => {
        removeGuard()
        return Promise.resolve()
      })
    },
    { prefix: EXT_PREFIX },
  )
}

/** Reports the failure of the plugin, and lets the others go on. */
async function registerPlugin(
  scope: FastifyInstance,
  plugin: RoutePlugin,
  failures: Map<unknown, string>,
): Promise<void> {
  const name = plugin.name === '' ? 'a plugin' : `the plugin ${plugin.name}`
  const report = (error: unknown) => {
    // After the failure of a nested plugin, Fastify reports it for the later ones too.
    if (!failures.has(error)) failures.set(error, `${name} failed: ${describePluginError(error)}`)
  }
  const reporting: RoutePlugin = async (fastify, options) => {
    try {
      await callPlugin(plugin, fastify, options)
    } catch (error) {
      report(error)
    }
  }
  try {
    // A plugin without a scope of its own is marked by a property.
    await scope.register(Object.assign(reporting, plugin))
  } catch (error) {
    report(error)
  }
}

/** Calls a plugin like Fastify: one with three parameters calls `done`, any other one may return a promise. */
async function callPlugin(
  plugin: RoutePlugin,
  fastify: FastifyInstance,
  options: Parameters<RoutePlugin>[1],
): Promise<void> {
  if (plugin.length < 3) return plugin(fastify, options, () => undefined)
  return new Promise((resolve, reject) => {
    const done = (error?: Error) => {
      if (error) reject(error)
      else resolve()
    }
    const returned: unknown = plugin(fastify, options, done)
    if (returned instanceof Promise)
      returned.then(() => {
        resolve()
      }, reject)
  })
}

/** Adds the place in the code of the plugin, if the stack has one. */
function describePluginError(error: unknown): string {
  if (!(error instanceof Error)) return describeThrown(error)
  const frames = error.stack?.split('\n').slice(1) ?? []
  const own = frames.find((frame) => !frame.includes('node:') && !frame.includes('node_modules'))
  const place = /\(?([^\s()]+:\d+):\d+\)?$/.exec(own ?? '')?.[1]
  return place === undefined ? error.message : `${error.message} (${place})`
}

function addScopeHooks(scope: FastifyInstance, context: ExtRouteContext): void {
  const { app, guards, settings, routeTimeoutMs = ROUTE_TIMEOUT_MS } = context
  addRouteTimeout(scope, routeTimeoutMs)
  // The hook below sets it before any code of a plugin runs.
  scope.decorateRequest('verso', null as never)
  // A promise that a route or a hook of a plugin leaves behind and that rejects later must not end the process.
  const enterTask = (
    { id: requestId, method, routeOptions }: FastifyRequest,
    _: FastifyReply,
    done: () => void,
  ) => {
    const facts = { route: `${method} ${routeOptions.url ?? ''}`, requestId }
    callRouteInTask({ log: app.log, facts }, done)
  }
  // The hooks of this scope run before those of the plugins.
  scope.addHook('onRequest', (request, reply, done) => {
    setNoStore(reply)
    request.verso = new RequestCaller(app, request)
    enterTask(request, reply, done)
  })
  scope.addHook('onRequest', runGuards([createRouteGuard(guards)]))
  scope.addHook('preHandler', runGuards([createBodyGuard(guards)]))
  // The events of the body belong to no task.
  scope.addHook('preValidation', enterTask)
  scope.addHook('onSend', (_, reply, payload, done) => {
    addCommonHeaders(reply)
    done(null, payload instanceof Readable ? refuseObjects(payload) : payload)
  })
  scope.setSchemaErrorFormatter(formatSchemaErrors)
  // The error handler of the server answers what this one throws.
  scope.setErrorHandler((error, request) => {
    throw convertRouteError(concealSystemError(error, request.principal), request)
  })
  refuseUnknownPaths(scope, settings.basePath)
}

/** A stream of objects fails as a stream, with a log line. Written to the socket, an object would end the process. */
function refuseObjects(stream: Readable): Readable {
  if (!stream.readableObjectMode) return stream
  const checked = new Transform({
    writableObjectMode: true,
    transform: (chunk: unknown, _, done) => {
      if (typeof chunk === 'string' || chunk instanceof Uint8Array) done(null, chunk)
      else done(new TypeError('a stream of a route must consist of strings or bytes'))
    },
  })
  // The error reaches the server by the stream that it reads.
  return pipeline(stream, checked, () => undefined)
}

/** The headers that the route has set win. */
function addCommonHeaders(reply: FastifyReply): void {
  const headers = buildHeaderList(reply)
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2)
    if (!reply.hasHeader(name)) void reply.header(name, value)
    // The answer depends on the credentials all the same.
    else if (name === 'vary') void reply.header(name, `${String(reply.getHeader(name))}, ${value}`)
  }
}

/**
 * Returns VersoErrors and errors of Fastify unchanged. Anything else is a defect of the route, whatever status it names: an error of a library
 * that has called another service says nothing about this request.
 */
function convertRouteError(error: unknown, { method, routeOptions }: FastifyRequest): Error {
  if (error instanceof VersoError || isFastifyError(error)) return error
  const route = `${method} ${routeOptions.url ?? ''}`
  const thrown = error instanceof Error ? '' : `: ${describeThrown(error)}`
  return Object.assign(new Error(`the route ${route} failed${thrown}`, { cause: error }), { route })
}

function isFastifyError(error: unknown): error is Error {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    error.code.startsWith('FST_')
  )
}

/** Reads the principal of the request at each call: a guard authenticates it again after a slow body. */
class RequestCaller implements VersoRequest {
  constructor(
    private readonly app: App,
    private readonly request: FastifyRequest,
  ) {}

  get user(): UserSummary | null {
    const { principal } = this.request
    return principal && toUserSummary(principal)
  }

  get records(): RecordsHandle {
    const { app, request } = this
    if (!request.principal) return createAnonymousRecords(app)
    return createRecordsHandle(app, async () => Promise.resolve(requirePrincipal(request)))
  }
}

function createAnonymousRecords(app: App): RecordsHandle {
  return {
    of: refuseAnonymous,
    transaction: async () => Promise.resolve(refuseAnonymous()),
    asSystem: () => createRecordsHandle(app, async () => Promise.resolve(SERVICE_PRINCIPAL)).asSystem(),
  }
}

function refuseAnonymous(): never {
  throw new VersoError(
    'unauthenticated',
    'Not logged in: this part of the route needs a user. Send username and password to POST /callback, or send an API key',
  )
}
