// What a person has typed and not saved, kept in the browser. It survives a closed tab, a crash and the end of a session.
//
// A draft holds the record that it is based on, so that restoring it cannot overwrite what others have saved since. Two tabs with the same
// record have a draft each. A lock that the browser releases with the tab tells whether a draft is still open in another tab.
import { isPendingFile } from '../fields/field-props.js'
import type { FieldInfo } from '../service/model-info.js'
import { getAccount } from '../service/session.js'
import { listStored, readStored, writeStored } from '../service/storage.js'
import { createRandomText } from './random-text.js'
import { isObject, listChangedFields, listLines, type RecordValues } from './record-values.js'

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

/** Drafts of one person for one record. */
function buildPrefix(model: string, id: number | 'new'): string {
  return `draft:${getAccount().id}:${model}:${id}:`
}

/** The fields of a form, and by owned list those of its lines that are secrets. */
interface DraftFields {
  readonly fields: readonly FieldInfo[]
  readonly lineSecrets: Readonly<Record<string, readonly string[]>>
}

/** The draft of one open form. */
export class DraftKeeper {
  #key: string
  #release: (() => void) | undefined

  constructor(
    private readonly model: string,
    id: number | 'new',
    private readonly known: DraftFields,
  ) {
    this.#key = buildPrefix(model, id) + createRandomText()
    this.#release = holdLock(this.#key)
  }

  /** Returns false if something that was changed is not stored: the browser refuses, or it is a secret or a file. */
  keep({ base, values }: FormState): boolean {
    const changed = listChangedFields(this.known.fields, values, base)
    // Secrets are never stored outside of the service, and a file cannot be.
    const kept = changed.filter((field) => !isSecret(field) && !isPendingFile(values[field.name]))
    if (kept.length === 0) {
      this.remove()
      return changed.length === 0
    }
    const stored = kept.map(({ name }) => [name, this.#omitSecrets(name, values[name])] as const)
    const draft: Draft = { base, values: Object.fromEntries(stored), savedOn: new Date().toISOString() }
    return writeStored(this.#key, draft) && kept.length === changed.length
  }

  /** The record has got an id: the draft now belongs to it. */
  moveTo(id: number): void {
    const draft = readStored(this.#key)
    this.remove()
    this.stop()
    this.#key = buildPrefix(this.model, id) + createRandomText()
    this.#release = holdLock(this.#key)
    if (draft !== undefined) writeStored(this.#key, draft)
  }

  remove(): void {
    writeStored(this.#key, undefined)
  }

  stop(): void {
    this.#release?.()
    this.#release = undefined
  }

  #omitSecrets(name: string, value: unknown): unknown {
    const secrets = this.known.lineSecrets[name] ?? []
    if (secrets.length === 0) return value
    return listLines(value).map((line) =>
      Object.fromEntries(Object.entries(line).filter(([field]) => !secrets.includes(field))),
    )
  }
}

/** Values that the person may write but not read are secrets, too: the next person in this browser may not see them. */
export function isSecret({ isSecret: isHidden, isWriteOnly }: FieldInfo): boolean {
  return isHidden || isWriteOnly
}

/** Stores a draft for the next form of the record. */
export function storeDraft(model: string, id: number | 'new', { base, values, savedOn }: Draft): void {
  writeStored(buildPrefix(model, id) + createRandomText(), { base, values, savedOn })
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
