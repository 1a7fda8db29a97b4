// Runs the hooks of records that an import creates. Each line is a create by the service itself.
import { VersoError } from '../../errors.js'
import type { Model } from '../../model/definition/model.js'
import { computeValues } from '../../model/definition/record-values.js'
import { isSameValue, type Values } from '../../model/values/value.js'
import type { Draft } from '../../model/write/draft.js'
import type { RowWithId } from '../../store/records/bulk.js'
import type { ModelHooks } from '../context/app.js'
import { lockReferences } from '../write/lock-order.js'
import { diffFiles } from '../write/held-files.js'
import type { WriteState } from '../write/write-state.js'
import type { NumberedLine } from './import-existing.js'
import { LineError } from './import-source.js'

/** The hooks of one batch of lines. */
export class ImportHooks {
  constructor(
    private readonly state: WriteState,
    private readonly model: Model,
    private readonly hooks: ModelHooks,
  ) {}

  /** Undefined if the model has no hooks: its rows are then written faster. */
  static find(state: WriteState, model: Model): ImportHooks | undefined {
    const hooks = state.hooks.find(model)
    return hooks && new ImportHooks(state, model, hooks)
  }

  /** Stores the rows one after the other, each between its hooks. Adds them to the change set, because hooks may write them again. */
  async storeRows(
    rows: readonly PreparedLine[],
    store: (rows: readonly PreparedLine[]) => Promise<readonly RowWithId[]>,
  ): Promise<readonly RowWithId[]> {
    const { state, model } = this
    const table = state.context.app.tables.of(model)
    state.changeSet.expectLaterRecords()
    const all: RowWithId[] = []
    for (const { line, values } of rows) {
      const prepared = await withLine(line, () => this.#prepare(values))
      for (const stored of await store([{ line, values: prepared }])) {
        const { id } = stored
        state.changeSet.addCreated(table, id, undefined)
        state.changeSet.setFileChanges(table, id, diffFiles(table, new Map(), stored.values))
        const save = { draft: this.#toDraft(prepared), id, before: undefined, changed: prepared }
        await withLine(line, () => state.hooks.runAfterSave(this.hooks, save))
        all.push(stored)
      }
    }
    return all
  }

  /** Runs the hooks before a line is stored. Returns the values to store. */
  async #prepare(values: Values): Promise<Values> {
    const { state, hooks, model } = this
    const draft = this.#toDraft(values)
    const prepared = await state.hooks.runBeforeSave(hooks, { draft, values, before: undefined })
    state.context.attempt.errors?.refuseIfAny(model)
    if (prepared === values) return values
    await lockReferences(state.context, draft, pickSet(values, prepared), {})
    return { ...prepared, ...computeValues(model, prepared) }
  }

  #toDraft(values: Values): Draft {
    const none = { related: new Map(), lists: new Map(), copies: new Map() }
    return { model: this.model, key: undefined, path: '', values, ...none }
  }
}

/** A line with the values to store. */
interface PreparedLine {
  readonly line: NumberedLine
  readonly values: Values
}

/** Adds the number of the line to an error. */
async function withLine<T>({ line }: NumberedLine, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof VersoError ? new LineError(line, error.message) : error
  }
}

/** Picks the values that hooks have set. */
function pickSet(sent: Values, prepared: Values): Values {
  return Object.fromEntries(
    Object.entries(prepared).filter(([name, value]) => !isSameValue(sent[name] ?? null, value)),
  )
}
