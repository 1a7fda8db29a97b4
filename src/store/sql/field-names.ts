// Maps field names in the Log to current fields. Fields are renamed, dropped and created again, and logged Changes keep the old names.
import type { Model } from '../../model/definition/model.js'
import { isStorableValue } from '../../model/definition/record-values.js'
import type { Change } from '../../wire.js'

/** Stands for all fields instead of one name. */
export const ALL_FIELDS = '*'

/** A rename or removal of a field. `seq` is the last Change with the old name. */
export interface FormerField {
  readonly name: string
  /** The new name; null if the field was removed, even if another field has its name now. */
  readonly became: string | null
  readonly seq: number
}

/** By model, in chronological order. */
export type FormerFields = ReadonlyMap<string, readonly FormerField[]>

/** A Change in terms of the current fields. */
export interface TranslatedChange {
  readonly changes: Change['changes']
  /** Fields whose values at that time are unknown: they did not exist yet, or the logged value does not fit the current field. */
  readonly unknownFields: readonly string[]
  /** True if it contains a field name with no known successor. */
  readonly hasUnexplainedFields: boolean
}

/** The current and former names of the fields of a model. */
export class FieldNameHistory {
  /** By current name, and by `renamedFrom` for databases that have no history of the field. */
  readonly #currentNames: ReadonlyMap<string, string>
  /** The Change after which a field was created, if another field had its name before. */
  readonly #fieldStarts: readonly (readonly [name: string, seq: number])[]
  readonly #lastRenameSeq: number

  constructor(
    private readonly model: Model,
    private readonly former: readonly FormerField[],
  ) {
    const logged = [...model.fields.values()].filter(({ secret }) => secret === undefined)
    const renamed = logged.flatMap(({ name, renamedFrom }) =>
      renamedFrom === undefined ? [] : [[renamedFrom, name] as const],
    )
    this.#currentNames = new Map([...renamed, ...logged.map(({ name }) => [name, name] as const)])
    this.#fieldStarts = logged.flatMap(({ name }) => {
      const seq = findFieldStart(name, former)
      return seq === undefined ? [] : [[name, seq] as const]
    })
    this.#lastRenameSeq = Math.max(0, ...former.map(({ seq }) => seq))
  }

  translate({ seq, changes }: Pick<Change, 'seq' | 'changes'>): TranslatedChange {
    const newer = seq > this.#lastRenameSeq ? [] : this.#fieldStarts.filter(([, start]) => seq <= start)
    const unknownFields = newer.map(([name]) => name)
    const translated: [string, Change['changes'][string]][] = []
    let hasUnexplainedFields = false
    for (const [logged, each] of Object.entries(changes)) {
      const name = this.#findCurrentName(logged, seq)
      const field = name === null || name === undefined ? undefined : this.model.fields.get(name)
      if (name === undefined) hasUnexplainedFields = true
      if (!field || unknownFields.includes(field.name)) continue
      if (isStorableValue(field, each.before) && isStorableValue(field, each.after))
        translated.push([field.name, each])
      else unknownFields.push(field.name)
    }
    return { changes: Object.fromEntries(translated), unknownFields, hasUnexplainedFields }
  }

  /** Null if the field was removed; undefined if the name is not known. */
  #findCurrentName(logged: string, seq: number): string | null | undefined {
    if (seq > this.#lastRenameSeq) return this.#currentNames.get(logged)
    let name = logged
    for (const each of this.former) {
      if (each.seq < seq || (each.name !== name && each.name !== ALL_FIELDS)) continue
      if (each.became === null) return null
      name = each.became
    }
    return this.#currentNames.get(name)
  }
}

/** Follows the former names of a field backwards until one of them belonged to another field. */
function findFieldStart(currentName: string, former: readonly FormerField[]): number | undefined {
  let name = currentName
  for (const each of [...former].reverse()) {
    if (each.became === name) ({ name } = each)
    else if (each.name === name || each.name === ALL_FIELDS) return each.seq
  }
  return undefined
}
