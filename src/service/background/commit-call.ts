// Builds the calls of `afterCommit` hooks from the change log.
import { VersoError } from '../../errors.js'
import { deepFreeze } from '../../model/definition/define-model.js'
import type { CommitCall, CommitHook, UserSummary } from '../../model/definition/hooks.js'
import { listCommitHooks } from '../../model/definition/hooks.js'
import type { Model } from '../../model/definition/model.js'
import type { RecordsHandle } from '../../model/definition/typed-records.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import type { Values } from '../../model/values/value.js'
import { findUser } from '../../store/auth/accounts.js'
import { findAuthorId } from '../../store/hooks/consumers.js'
import { isKnownIn, translateFieldNames, type RecordState, type Revision } from '../../store/log/rewind.js'
import { readRevisions } from '../../store/log/timeline.js'
import type { Change } from '../../wire.js'
import type { App } from '../context/app.js'
import { toUserIdentity } from '../context/identity.js'
import { SERVICE_PRINCIPAL, type Principal } from '../context/principal.js'
import { toUserSummary } from '../hooks/hook-calls.js'
import { createRecordsHandle } from '../hooks/records-handle.js'

/** One `afterCommit` function of one model. */
export interface CommitConsumer {
  /** `<model>/<name>`. The database remembers under it what has run. */
  readonly name: string
  readonly model: Model
  readonly run: CommitHook
}

/** Lists all `afterCommit` functions. */
export function listCommitConsumers({ storedModels }: Pick<Catalog, 'storedModels'>): CommitConsumer[] {
  return storedModels.flatMap((model) =>
    model.hooks
      .flatMap(({ afterCommit }) => listCommitHooks(afterCommit))
      .map(({ name, run }) => ({ name: `${model.name}/${name}`, model, run })),
  )
}

/** Finds a Change with the record before and after it, as far as the Log still has them. */
export type RevisionReader = (change: Change) => Promise<Revision>

/** Reads all given Changes of one record when the first of them is needed. */
export function createRevisionReader(
  { db, tables }: Pick<App, 'db' | 'tables'>,
  model: Model,
  changes: readonly Change[],
): RevisionReader {
  const table = tables.of(model)
  const readAll = async () => {
    const versions = new Map(changes.map(({ id }) => [id, new Set(changes.map(({ version }) => version))]))
    const [found] = await readRevisions(db.queryPool, table, versions)
    return new Map(found?.revisions.map((revision) => [revision.change.seq, revision]))
  }
  let reading: ReturnType<typeof readAll> | undefined
  return async (change) => {
    const revision = (await (reading ??= readAll())).get(change.seq)
    // Compaction may have deleted the Change since it was read.
    return revision ?? { change: translateFieldNames(table, change), before: 'unknown', after: 'unknown' }
  }
}

/** One attempt to run a hook for a Change. */
export interface CommitRun {
  readonly attempt: number
  /** Aborts when the run has ended. */
  readonly signal: AbortSignal
}

/** Builds the call for one attempt. The author is read now, so that the call has their current permissions. */
export async function buildCommitCall(
  app: App,
  model: Model,
  { change, before, after }: Revision,
  { attempt, signal }: CommitRun,
): Promise<CommitCall> {
  const { id, action, version, seq, on, changes } = change
  const { user, records } = await resolveAuthor(app, change, signal)
  return Object.freeze({
    model: model.name,
    id,
    action,
    version,
    seq,
    on,
    before: action === 'create' ? undefined : toFrozenState(model, before),
    after: action === 'delete' ? undefined : toFrozenState(model, after),
    changed: new Set(Object.keys(changes).filter((name) => !model.fields.get(name)?.computed)),
    user,
    attempt,
    records,
    signal,
  })
}

/** Fields whose value is not known are absent. */
function toFrozenState({ shownFields }: Model, state: RecordState): Readonly<Values> | undefined {
  if (typeof state === 'string') return undefined
  const values: Values = {}
  for (const { name } of shownFields) if (isKnownIn(state, name)) values[name] = state[name] ?? null
  return deepFreeze(values)
}

interface ChangeAuthor {
  readonly user: UserSummary | null
  readonly records: RecordsHandle
}

async function resolveAuthor(app: App, { seq, by }: Change, signal: AbortSignal): Promise<ChangeAuthor> {
  const bindRecords = (resolvePrincipal: () => Promise<Principal>) =>
    createRecordsHandle(app, async () => {
      // A later run for this record may have begun.
      if (signal.aborted) throw new Error('The run of this hook has ended, and its records with it')
      return resolvePrincipal()
    })
  const userId = by?.id ?? (await findAuthorId(app.db.reader, seq))
  if (userId === null)
    return { user: null, records: bindRecords(async () => Promise.resolve(SERVICE_PRINCIPAL)) }
  const user = await findUser(app.db.reader, userId)
  const resolvePrincipal = async (): Promise<Principal> => {
    const account = await findUser(app.db.reader, userId)
    if (!account || account.disabled) throw createNoAccountError()
    return app.authorizer.resolvePrincipal(toUserIdentity(account))
  }
  const system = { ...SERVICE_PRINCIPAL, user: user ? toUserIdentity(user) : null }
  return {
    user: user
      ? deepFreeze(toUserSummary(await app.authorizer.resolvePrincipal(toUserIdentity(user))))
      : null,
    records: {
      ...bindRecords(resolvePrincipal),
      // The service may finish what a user has begun, also after the account has ended.
      asSystem: () => bindRecords(async () => Promise.resolve(system)),
    },
  }
}

function createNoAccountError(): VersoError {
  return new VersoError(
    'forbidden',
    'The account that made this change is disabled or deleted. To act without its permissions, use records.asSystem(); nothing was changed',
  )
}
