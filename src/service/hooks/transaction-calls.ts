// The calls of one principal in a transaction: they run the hooks of what they write.
import type { UntypedDefinition } from '../../model/definition/untyped-definition.js'
import type { RecordQuery, TransactionModelRecords } from '../../model/definition/typed-records.js'
import type { Model } from '../../model/definition/model.js'
import { andCriteria, type Criteria } from '../../model/query/criteria.js'
import { ID_FIELD } from '../../model/query/path.js'
import { parseFindQuery } from '../../model/query/search.js'
import { listAllDrafts, type Draft } from '../../model/write/draft.js'
import { findPage } from '../../store/find/pages.js'
import * as store from '../../store/records/records.js'
import type { ReadFilter } from '../../store/sql/point-read.js'
import type { Page, WireRecord } from '../../wire.js'
import {
  parseCreate,
  parseRemoveVersion,
  parseUpdate,
  requireDirectCreate,
  requireId,
  requireKnownModel,
  requirePermission,
  requireWritableModel,
  throwNotFound,
  type ParsedSave,
} from '../access/request-checks.js'
import { getSelect, getVisibleCriteria } from '../access/visible-records.js'
import { computeAnswerRoom, createFoundTooLargeError, readWithinLimit } from '../context/answer-limits.js'
import { AnswerPage } from '../context/answer-page.js'
import { getVisibility, type WriteContext } from '../context/context.js'
import { removeInTransaction } from '../records/remove.js'
import { buildResultReader, saveInTransaction } from '../records/save.js'
import { RecordWriter } from '../write/record-writer.js'
import { WriteState } from '../write/write-state.js'
import { toFindQuery } from './record-query.js'
import { markSystemErrors } from './system-errors.js'
import type { TransactionSession } from './transaction-session.js'

/** Counters do not contain what the transaction has written. A search with a condition does not use them. */
const ANY_ID: Criteria = { kind: 'comparison', steps: [], field: ID_FIELD, operator: '>=', values: [0] }

export class TransactionCalls {
  #state: WriteState | undefined

  constructor(
    private readonly context: WriteContext,
    private readonly parent: WriteState,
  ) {}

  bindModel(session: TransactionSession, name: string): TransactionModelRecords<UntypedDefinition> {
    const findModel = () => requireKnownModel(this.context.app, this.context.principal, name)
    const findWritableModel = () => requireWritableModel(findModel())
    const { permissions } = this.context.principal
    const run = <T>(call: () => Promise<T>) => (permissions ? call() : markSystemErrors(call))
    const read = <T>(call: () => Promise<T>) => session.read(() => run(call))
    const write = <T>(call: () => Promise<T>) => session.write(() => run(call))
    return {
      find: (query) => read(() => this.#find(findModel(), query ?? {})),
      read: (id) => read(() => this.#read(findModel(), id)),
      lock: (id) => session.lock(() => run(() => this.#lock(findModel(), id))),
      create: (data) => write(() => this.#create(findWritableModel(), data)),
      update: (id, data) => write(() => this.#update(findWritableModel(), id, data)),
      remove: (id, target = {}) => write(() => this.#remove(findWritableModel(), id, target.version)),
    }
  }

  /** The first write creates the state, which takes part in the checks at the end of the transaction. */
  get #nested(): WriteState {
    return (this.#state ??= new WriteState(this.context, this.parent))
  }

  async #find(model: Model, query: RecordQuery<UntypedDefinition>): Promise<Page> {
    const { app, principal, tx } = this.context
    requirePermission(principal, 'read', model)
    const parsed = parseFindQuery(
      getVisibility(app, principal),
      model,
      toFindQuery(query),
      app.settings.maxPageSize,
    )
    const search = {
      ...parsed,
      isInTransaction: true,
      where: andCriteria(parsed.where, ANY_ID),
      visible: getVisibleCriteria(principal, model),
    }
    const list = getSelect(this.context, model, 'list')
    const maxBytes = computeAnswerRoom(app.settings)
    const found = await findPage(tx, app.tables.of(model), search, { list, maxBytes })
    if (!found) throw createFoundTooLargeError(app.settings)
    return new AnswerPage(search, found).toPage()
  }

  async #read(model: Model, id: number): Promise<WireRecord> {
    requirePermission(this.context.principal, 'read', model)
    const { app, principal, tx } = this.context
    const select = getSelect(this.context, model, 'full')
    const table = app.tables.of(model)
    const record = { id: requireId(model, id), select, visible: getVisibleCriteria(principal, model) }
    const read = (filter: ReadFilter) => store.readById(tx, table, id, { select, filter })
    return (await readWithinLimit(app, { db: tx, table }, record, read)) ?? throwNotFound(model, id)
  }

  async #lock(model: Model, id: number): Promise<WireRecord> {
    const { app, tx } = this.context
    requirePermission(this.context.principal, 'read', model)
    await store.readForUpdate(tx, app.tables.of(model), requireId(model, id))
    return this.#read(model, id)
  }

  async #create(model: Model, data: unknown): Promise<WireRecord> {
    requireDirectCreate(model)
    return this.#save(parseCreate(this.context, model, data))
  }

  async #update(model: Model, id: number, data: unknown): Promise<WireRecord> {
    return this.#save(await parseUpdate(this.context, model, { id, data }, {}))
  }

  async #save(save: ParsedSave): Promise<WireRecord> {
    const { context } = this
    const { draft } = save
    const { model } = draft
    for (const each of listAllDrafts(draft)) {
      this.parent.refusePending(each.model, each.key?.id)
      this.#refuseUnprepared(each)
    }
    const state = this.#nested
    const plan = context.app.planWrite(context, draft, {})
    const writer = new RecordWriter(context, [draft], { isSingleRecord: false, plan, state })
    const id = await saveInTransaction(writer, save, { merges: false, plan })
    return buildResultReader(context, model, {})(state, id)
  }

  async #remove(model: Model, id: number, version: number | undefined): Promise<void> {
    const state = this.#nested
    requireId(model, id)
    this.parent.refusePending(model, id)
    // The record gets a Change for what the transaction has written so far, and one for its removal.
    if (state.isWritten(model, id)) await state.completeRecords({ model, id }, true)
    const expected = parseRemoveVersion(version === undefined ? {} : { version })
    await removeInTransaction(state, { model, id, expected })
  }

  /** Passwords are hashed, and rules of the service run, before a transaction: they take too long to hold one. */
  #refuseUnprepared({ model, values }: Draft): void {
    const { app } = this.context
    const isPassword = (name: string) => model.fields.get(name)?.secret === 'password'
    const hasPassword = Object.entries(values).some(([name, value]) => value !== null && isPassword(name))
    if (!hasPassword && !app.hooks.models.get(model.name)?.prepare) return
    const what = hasPassword ? `A password of ${model.name}` : model.name
    throw new Error(
      `${what} cannot be written in a transaction. In a hook, write it in afterCommit; in a program, before or after the transaction`,
    )
  }
}
