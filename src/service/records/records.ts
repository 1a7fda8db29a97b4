// The record verbs, bound to a user. Embedding programs and HTTP call the same functions.
import type { Records } from '../../wire.js'
import type { UserIdentity } from '../context/identity.js'
import type { App } from '../context/app.js'
import { type Principal } from '../context/principal.js'
import { runBatch } from './batch.js'
import { copyRecord } from './copy.js'
import { clearFile, downloadFile, uploadFile } from './files.js'
import { findDeletedRecords } from '../log/deleted-records.js'
import { readHistory } from '../log/history.js'
import { readRecordAt } from '../log/record-at.js'
import { updateMass } from './mass-update.js'
import { readChanges } from '../log/feed.js'
import { requireKnownModel, requireWritableModel } from '../access/request-checks.js'
import { removeRecord, removeListedRecords } from './remove.js'
import { createRecord, saveRecords, updateRecord } from './save.js'
import { revertRecord } from './revert.js'
import { verifyVersions } from './verify.js'
import { createContext } from '../context/context.js'
import { refuseOuterRecords } from '../context/hook-scope.js'

import { fetchRecord, findByQuery, readRecord, searchByRequest } from './read.js'

/**
 * Binds the record verbs to one user. A program that embeds the service calls them; HTTP calls the same.
 *
 * @example
 * const { user } = await login(app, { username: 'ada', password }, { address: '127.0.0.1' })
 * const { data: task } = await recordsFor(app, user).create('todo.Task', { title: 'Write' })
 */
export function recordsFor(app: App, user: UserIdentity): Records {
  // Permissions may change while a program runs, so every call resolves them.
  return bindRecords(app, () => app.authorizer.resolvePrincipal(user))
}

/** Binds the record verbs to a principal whose permissions were just resolved. */
export function recordsForPrincipal(app: App, principal: Principal): Records {
  return bindRecords(app, async () => principal)
}

/** Binds the record verbs to a principal that every call resolves. */
export function bindRecords(app: App, resolvePrincipal: () => Promise<Principal>): Records {
  const open = async (name: string) => {
    refuseOuterRecords()
    const principal = await resolvePrincipal()
    return { context: createContext(app, principal), model: requireKnownModel(app, principal, name) }
  }
  const openWritable = async (name: string) => {
    const { context, model } = await open(name)
    return { context, model: requireWritableModel(model) }
  }
  return {
    find: async (name, query) => {
      const { context, model } = await open(name)
      return (await findByQuery(context, model, query ?? {})).toPage()
    },
    search: async (name, request, options) => {
      const { context, model } = await open(name)
      return (await searchByRequest(context, model, { request, options })).toPage()
    },
    read: async (name, id) => {
      const { context, model } = await open(name)
      return (await readRecord(context, model, id)).record
    },
    fetch: async (name, id, fields) => {
      const { context, model } = await open(name)
      return (await fetchRecord(context, model, id, fields ?? {})).record
    },
    readAt: async (name, id, asOf) => {
      const { context, model } = await open(name)
      return readRecordAt(context, model, id, asOf)
    },
    history: async (name, id, query) => {
      const { context, model } = await open(name)
      return readHistory(context, model, id, query ?? {})
    },
    deleted: async (name, query) => {
      const { context, model } = await open(name)
      return findDeletedRecords(context, model, query ?? {})
    },
    copy: async (name, id) => {
      const { context, model } = await open(name)
      return copyRecord(context, model, id)
    },
    verify: async (name, data) => {
      const { context, model } = await open(name)
      return verifyVersions(context, model, data)
    },
    changes: async (query) => {
      refuseOuterRecords()
      return readChanges(app, resolvePrincipal, query)
    },
    create: async (name, data, options) => {
      const { context, model } = await openWritable(name)
      return createRecord(context, model, data, options)
    },
    update: async (name, id, data, options) => {
      const { context, model } = await openWritable(name)
      return updateRecord(context, model, { id, data }, options)
    },
    save: async (name, records, options) => {
      const { context, model } = await openWritable(name)
      return saveRecords(context, model, records, options)
    },
    updateMass: async (name, request, options) => {
      const { context, model } = await openWritable(name)
      return updateMass(context, model, request, options)
    },
    remove: async (name, id, options) => {
      const { context, model } = await openWritable(name)
      return removeRecord(context, model, id, options)
    },
    revert: async (name, id, data, options) => {
      const { context, model } = await openWritable(name)
      return revertRecord(context, model, { id, data }, options)
    },
    removeAll: async (name, records, options) => {
      const { context, model } = await openWritable(name)
      return removeListedRecords(context, model, records, options)
    },
    batch: async (requests, options) => {
      refuseOuterRecords()
      return runBatch(createContext(app, await resolvePrincipal()), requests, options)
    },
    upload: async (name, sent, options) => {
      const { context, model } = await openWritable(name)
      return uploadFile(context, model, sent, options)
    },
    download: async (name, id, fieldName, options) => {
      const { context, model } = await open(name)
      return downloadFile(context, model, { id, fieldName }, options)
    },
    clear: async (name, id, fieldName, options) => {
      const { context, model } = await openWritable(name)
      return clearFile(context, model, { id, fieldName }, options)
    },
  }
}
