// What a person has typed and not saved, kept in the browser. It survives a closed tab, a crash and the end of a session.
//
// A draft holds the record that it is based on, so that restoring it cannot overwrite what others have saved since. Two tabs with the same
// record have a draft each. A lock that the browser releases with the tab tells whether a draft is still open in another tab.
import { isPendingFile } from '../fields/field-props.js'
import type { FieldInfo } from '../service/model-info.js'
import { getAccount } from '../service/session.js'
import { listStored, readStored, writeStored } from '../service/storage.js'
import { isObject, listChangedFields, type RecordValues } from './record-values.js'

export interface Draft {
  readonly base: RecordValues
  /** Only what was changed. */
  readonly values: RecordValues
  readonly savedOn: string
}

export interface FormState {
  readonly base: RecordValues
  readonly values: RecordValues
}

const RANDOM_BYTES = 8

/** Drafts of one person for one record. */
function buildPrefix(model: string, id: number | 'new'): string {
  return `draft:${getAccount().id}:${model}:${id}:`
}

/** `crypto.randomUUID` exists only on https and localhost. */
function createFormId(): string {
  return [...crypto.getRandomValues(new Uint8Array(RANDOM_BYTES))].map((byte) => byte.toString(36)).join('')
}

/** The draft of one open form. */
export class DraftKeeper {
  readonly #key: string
  #release: (() => void) | undefined

  constructor(
    model: string,
    id: number | 'new',
    private readonly fields: readonly FieldInfo[],
  ) {
    this.#key = buildPrefix(model, id) + createFormId()
    this.#release = holdLock(this.#key)
  }

  /** Returns false if the browser refuses to store it. */
  keep({ base, values }: FormState): boolean {
    // Secrets are never stored outside of the service, and a file cannot be.
    const changed = listChangedFields(this.fields, values, base)
      .filter((field) => !field.isSecret && !isPendingFile(values[field.name]))
      .map(({ name }) => [name, values[name]] as const)
    if (changed.length === 0) return this.remove()
    const draft: Draft = { base, values: Object.fromEntries(changed), savedOn: new Date().toISOString() }
    return writeStored(this.#key, draft)
  }

  remove(): boolean {
    return writeStored(this.#key, undefined)
  }

  stop(): void {
    this.#release?.()
    this.#release = undefined
  }
}

export interface FoundDraft extends Draft {
  /** Called when another draft has taken over its content. */
  readonly forget: () => void
}

/** Finds the newest draft of the record that no open tab has. */
export async function findDraft(model: string, id: number | 'new'): Promise<FoundDraft | undefined> {
  const held = await listHeldLocks()
  const drafts = listStored(buildPrefix(model, id))
    .filter((key) => !held.has(key))
    .map((key) => ({ key, draft: readStored(key) }))
    .filter((each): each is { key: string; draft: Draft } => isDraft(each.draft))
    .sort((left, right) => (left.draft.savedOn < right.draft.savedOn ? 1 : -1))
  const [newest] = drafts
  return newest && { ...newest.draft, forget: () => void writeStored(newest.key, undefined) }
}

function isDraft(value: unknown): value is Draft {
  return isObject(value) && isObject(value['base']) && isObject(value['values'])
}

/** Locks exist only on https and localhost. Without them, each form takes over whatever draft it finds. */
function findLocks(): LockManager | undefined {
  return (navigator as { readonly locks?: LockManager }).locks
}

function holdLock(name: string): (() => void) | undefined {
  const locks = findLocks()
  if (!locks) return undefined
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  void locks.request(name, () => released)
  return release
}

async function listHeldLocks(): Promise<ReadonlySet<string>> {
  const { held = [] } = (await findLocks()?.query()) ?? {}
  return new Set(held.map(({ name }) => name ?? ''))
}
