// All routes of the server, in scopes by the bodies that they accept and the caching that they allow.
import type { FastifyInstance } from 'fastify'
import { setNoStore } from './response/send.js'
import { createAdminResources } from './admin/admin-routes.js'
import { createKeyResources } from './auth/keys.js'
import { createLoginResources, createLogoutResource } from './auth/login.js'
import { createOwnAccountResources } from './auth/own-account.js'
import { createResetResource, createSetupResource } from './auth/password-pages.js'
import { createUserResources } from './auth/users.js'
import { createDocsResources } from './docs/docs-routes.js'
import { addExtRoutes, type ExtRouteContext } from './ext/ext-routes.js'
import { createChangesResource, type FeedContext } from './feed/changes.js'
import { createInfoResource } from './meta/app-info.js'
import { createHealthResources } from './meta/health.js'
import { createMetaResources } from './meta/meta.js'
import { collectRoutes, createOpenapiResources } from './openapi/openapi-routes.js'
import { createBatchResource } from './records/batch.js'
import { createExportResource } from './records/export.js'
import { createFileResource, createUploadResource } from './records/files.js'
import { acceptForms } from './records/form.js'
import { createRecordResources } from './records/record-routes.js'
import { acceptCredentials } from './request/bodies.js'
import { refuseUnknownPaths } from './route/errors.js'
import { runGuards } from './route/guard.js'
import { addResource, type Resource } from './route/resource.js'
import { createWebhookResources } from './webhooks.js'

export interface ServerRouteContext extends FeedContext, ExtRouteContext {
  /** Enables the route `/setup`. */
  readonly setupToken: string | undefined
  readonly offersDemoAccount: boolean
}

export async function addRoutes(server: FastifyInstance, context: ServerRouteContext): Promise<void> {
  const { app, guards, settings } = context
  await server.register(
    async (base) => {
      const routes = collectRoutes(base, settings)
      addResources(base, [
        ...createAdminResources(context),
        ...createHealthResources(app, () => server.commonHeaders.stopping.aborted),
      ])
      await base.register(async (scope) => {
        addLoginRoutes(scope, context)
      })
      await base.register(async (scope) => {
        acceptForms(scope)
        addResource(scope, createUploadResource(context))
      })
      addResources(base, [
        ...createRecordResources(context),
        createBatchResource(context),
        createChangesResource(context),
        createExportResource(context),
        createFileResource(context),
        ...createMetaResources(context),
        ...createOpenapiResources(context, routes),
        createInfoResource(context, context.offersDemoAccount),
        ...createDocsResources(context),
      ])
      await base.register(async (scope) => {
        addAccountRoutes(scope, context)
      })
      await base.register(
        async (scope) => {
          // Unauthenticated requests to unknown paths get 401, not 404.
          scope.addHook('onRequest', runGuards([guards.requireLogin]))
          refuseUnknownPaths(scope, settings.basePath)
        },
        { prefix: '/ws' },
      )
      if (context.routes.length > 0) await addExtRoutes(base, context, (route) => routes.push(route))
    },
    { prefix: settings.basePath },
  )
}

function addLoginRoutes(scope: FastifyInstance, context: ServerRouteContext): void {
  const { settings, setupToken } = context
  acceptCredentials(scope, settings.bodyLimitBytes)
  forbidCaching(scope)
  addResources(scope, [
    ...createLoginResources(context),
    createLogoutResource(context),
    createResetResource(context),
    ...(setupToken === undefined ? [] : [createSetupResource(context, setupToken)]),
  ])
}

/** Responses about accounts may contain secrets. */
function addAccountRoutes(scope: FastifyInstance, context: ServerRouteContext): void {
  forbidCaching(scope)
  addResources(scope, [
    ...createOwnAccountResources(context),
    ...createUserResources(context),
    ...createKeyResources(context),
    ...createWebhookResources(context),
  ])
}

function forbidCaching(scope: FastifyInstance): void {
  scope.addHook('onRequest', (_, reply, done) => {
    setNoStore(reply)
    done()
  })
}

function addResources(server: FastifyInstance, resources: readonly Resource[]): void {
  for (const resource of resources) addResource(server, resource)
}
