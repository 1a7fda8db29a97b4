// The typed records of one user: for programs that embed the service, for routes, and for hooks after the commit.
import type { AnyDefinition } from '../../model/definition/record-types.js'
import type { UntypedDefinition } from '../../model/definition/untyped-definition.js'
import type { ModelRecords, RecordsHandle } from '../../model/definition/typed-records.js'
import type { Records } from '../../wire.js'
import type { App } from '../context/app.js'
import { createContext } from '../context/context.js'
import { refuseOuterRecords } from '../context/hook-scope.js'
import type { Principal } from '../context/principal.js'
import { bindRecords } from '../records/records.js'
import { toFindQuery } from './record-query.js'
import { markErrorsOfCalls } from './system-errors.js'
import { readModelName, runInTransaction, withAllPermissions } from './transaction-records.js'

type ResolvePrincipal = () => Promise<Principal>

/** Binds typed records to a principal, which every call resolves anew because permissions may change. */
export function createRecordsHandle(app: App, resolvePrincipal: ResolvePrincipal): RecordsHandle {
  return buildHandle(app, resolvePrincipal, bindRecords(app, resolvePrincipal))
}

/** Binds typed records to a principal with all permissions. */
export function createSystemHandle(app: App, resolvePrincipal: ResolvePrincipal): RecordsHandle {
  return buildHandle(app, resolvePrincipal, bindSystemRecords(app, resolvePrincipal))
}

/** Binds the record verbs to a principal with all permissions. Their errors are marked: a route must not show them to everybody. */
export function bindSystemRecords(app: App, resolvePrincipal: ResolvePrincipal): Records {
  return markErrorsOfCalls(bindRecords(app, resolvePrincipal))
}

/** The errors of a transaction are marked where they arise: its work may throw its own. */
function buildHandle(app: App, resolvePrincipal: ResolvePrincipal, verbs: Records): RecordsHandle {
  return {
    // Only the caller knows the types of the fields.
    of: (model: AnyDefinition | string) => bindModelRecords(verbs, readModelName(model)),
    asSystem: () => createSystemHandle(app, async () => withAllPermissions(await resolvePrincipal())),
    transaction: async (work) => {
      refuseOuterRecords()
      return runInTransaction(createContext(app, await resolvePrincipal()), work)
    },
  }
}

function bindModelRecords(verbs: Records, name: string): ModelRecords<UntypedDefinition> {
  return {
    find: async (query) => verbs.find(name, toFindQuery(query)),
    read: async (id) => verbs.read(name, id),
    create: async (data) => (await verbs.create(name, data)).data,
    update: async (id, data) => (await verbs.update(name, id, data)).data,
    remove: async (id, target = {}) => {
      const { version } = target
      await verbs.remove(name, id, version === undefined ? {} : { version })
    },
    history: async (id, page) => verbs.history(name, id, page),
    revert: async (id, target) => (await verbs.revert(name, id, target)).data,
  }
}
