// A model whose `afterCommit` hooks note their calls, and nodes that run them.
import { defineModel } from '../../src/model/definition/define-model.js'
import type { CommitCall, CommitHook } from '../../src/model/definition/hooks.js'
import { createContext } from '../../src/service/context/context.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import {
  startCommitHooks,
  type CommitHookOptions,
  type CommitHooks,
} from '../../src/service/background/commit-hooks.js'
import { listJobs, type HookJob } from '../../src/store/hooks/jobs.js'
import { createRecord, updateRecord } from '../../src/service/records/save.js'
import { removeRecord } from '../../src/service/records/remove.js'
import type { WireRecord } from '../../src/wire.js'
import {
  startService,
  type DatabaseLocation,
  type Engine,
  type Service,
  type ServiceOptions,
} from '../targets.js'

export const TASK = 'job.Task'
export const LINE = 'job.Line'

/** The calls of one hook, as far as tests compare them. */
export class CallNotes {
  readonly calls: CommitCall[] = []
  /** What the hook does after its call was noted. */
  act: CommitHook = () => undefined

  readonly run: CommitHook = (call) => {
    this.calls.push(call)
    return this.act(call)
  }

  /** The versions of each record in the order of the calls. */
  versionsOf(id: number): number[] {
    return this.calls.filter((call) => call.id === id).map(({ version }) => version)
  }

  titles(): unknown[] {
    return this.calls.map(({ after }) => after?.['title'])
  }
}

export interface CommitService extends Service {
  readonly notes: CallNotes
  readonly otherNotes: CallNotes
  readonly hooks: CommitHooks
  readonly create: (title: string, more?: object) => Promise<WireRecord>
  readonly update: (record: WireRecord, values: object) => Promise<WireRecord>
  readonly remove: (record: WireRecord) => Promise<void>
  readonly jobs: () => Promise<HookJob[]>
}

export interface CommitServiceOptions extends ServiceOptions {
  readonly hookOptions?: CommitHookOptions
  readonly notes?: CallNotes
  readonly otherNotes?: CallNotes
}

export function createTaskModels(notes: CallNotes, otherNotes: CallNotes): ServiceOptions['models'] {
  const Task = defineModel({
    name: TASK,
    fields: {
      title: { type: 'string', required: true },
      state: { type: 'enum', selection: ['open', 'closed'], default: 'open' },
      parent: { type: 'many-to-one', target: TASK },
      lines: { type: 'one-to-many', target: LINE, mappedBy: 'task', owned: true },
      pin: { type: 'string', secret: true },
    },
    hooks: { afterCommit: { send: notes.run, count: otherNotes.run } },
  })
  const Line = defineModel({
    name: LINE,
    fields: { text: { type: 'string' }, task: { type: 'many-to-one', target: TASK } },
  })
  return [Task, Line].map((definition) => ({ file: 'commit-fixture.ts', definition }))
}

/** Starts a node that runs the hooks. */
export async function startCommitService(
  engine: Engine,
  {
    hookOptions,
    notes = new CallNotes(),
    otherNotes = new CallNotes(),
    ...options
  }: CommitServiceOptions = {},
): Promise<CommitService> {
  const models = createTaskModels(notes, otherNotes) ?? []
  const service = await startService(engine, { models, ...options })
  const { app, clock } = service
  // Otherwise retries become due during a test that takes long.
  clock.freeze()
  const hooks = startCommitHooks(app, hookOptions)
  const task = app.catalog.get(TASK)
  const context = () => createContext(app, SERVICE_PRINCIPAL)
  return {
    ...service,
    notes,
    otherNotes,
    hooks,
    create: async (title, more = {}) => (await createRecord(context(), task, { title, ...more })).data,
    update: async ({ id, version }, values) =>
      (await updateRecord(context(), task, { id, data: { version, ...values } })).data,
    remove: async ({ id, version }) => {
      await removeRecord(context(), task, id, { version })
    },
    jobs: () => listJobs(app.db.reader, 1_000),
    close: async () => {
      await hooks.stop()
      await service.close()
    },
  }
}

export type { DatabaseLocation }
