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
import { markSystemErrors } from './system-errors.js'
import { readModelName, runInTransaction, withAllPermissions } from './transaction-records.js'

/** Binds typed records to a principal, which every call resolves anew because permissions may change. */
export function createRecordsHandle(app: App, resolvePrincipal: () => Promise<Principal>): RecordsHandle {
  const verbs = bindRecords(app, resolvePrincipal)
  const bindModel = (model: AnyDefinition | string) => bindModelRecords(verbs, readModelName(model))
  return {
    // Only the caller knows the types of the fields.
    of: bindModel,
    asSystem: () =>
      createSystemHandle(createRecordsHandle(app, async () => withAllPermissions(await resolvePrincipal()))),
    transaction: async (work) => {
      refuseOuterRecords()
      return runInTransaction(createContext(app, await resolvePrincipal()), work)
    },
  }
}

/** Marks the errors of calls with all permissions. Those of a transaction are marked where they arise: its work may throw its own. */
function createSystemHandle(system: RecordsHandle): RecordsHandle {
  const bindMarked = (model: AnyDefinition | string) => {
    const records = system.of(readModelName(model))
    const marked: ModelRecords<UntypedDefinition> = {
      find: async (query) => markSystemErrors(() => records.find(query)),
      read: async (id) => markSystemErrors(() => records.read(id)),
      create: async (data) => markSystemErrors(() => records.create(data)),
      update: async (id, data) => markSystemErrors(() => records.update(id, data)),
      remove: async (id, target) => markSystemErrors(() => records.remove(id, target)),
      history: async (id, page) => markSystemErrors(() => records.history(id, page)),
      revert: async (id, target) => markSystemErrors(() => records.revert(id, target)),
    }
    return marked
  }
  const handle: RecordsHandle = {
    of: bindMarked,
    asSystem: () => handle,
    transaction: async (work) => system.transaction(work),
  }
  return handle
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
