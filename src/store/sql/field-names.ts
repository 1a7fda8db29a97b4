// What a name in the Log means: fields are renamed, dropped and made anew, and what is logged stays as it was written.
import type { Model } from '../../model/definition/model.js'
import { isStorableValue } from '../../model/definition/record-values.js'
import type { Change } from '../../wire.js'

/** Instead of a name: all of them. */
export const ALL_FIELDS = '*'

/** What became of a field after the Change with this number, the last one under the old name. */
export interface FormerField {
  readonly name: string
  /** Null if it is no more, even if another one has its name today. */
  readonly became: string | null
  readonly seq: number
}

/** By model, in the order in which it happened. */
export type FormerFields = ReadonlyMap<string, readonly FormerField[]>

/** What a Change says of the fields of today. */
export interface TranslatedChange {
  readonly changes: Change['changes']
  /** Fields that were not yet what they are today, or of which it tells what they cannot hold: what they held then is not known. */
  readonly unknownFields: readonly string[]
  /** Whether it tells of a field of which nobody knows what became. */
  readonly hasUnexplainedFields: boolean
}

/** The fields of a model, and all that they were. */
export class FieldNameHistory {
  /** By today's names and, for databases that do not know better, by those that the model says they had. */
  readonly #currentNames: ReadonlyMap<string, string>
  /** After which Change a field began, under whatever name, where another one had its name before. */
  readonly #fieldStarts: readonly (readonly [name: string, seq: number])[]
  readonly #lastRenameSeq: number

  constructor(
    private readonly model: Model,
    private readonly former: readonly FormerField[],
  ) {
    const told = [...model.fields.values()].filter(({ secret }) => secret === undefined)
    const named = told.flatMap(({ name, renamedFrom }) =>
      renamedFrom === undefined ? [] : [[renamedFrom, name] as const],
    )
    this.#currentNames = new Map([...named, ...told.map(({ name }) => [name, name] as const)])
    this.#fieldStarts = told.flatMap(({ name }) => {
      const seq = findFieldStart(name, former)
      return seq === undefined ? [] : [[name, seq] as const]
    })
    this.#lastRenameSeq = Math.max(0, ...former.map(({ seq }) => seq))
  }

  translate({ seq, changes }: Pick<Change, 'seq' | 'changes'>): TranslatedChange {
    const lost = seq > this.#lastRenameSeq ? [] : this.#fieldStarts.filter(([, begun]) => seq <= begun)
    const names = lost.map(([name]) => name)
    const told: [string, Change['changes'][string]][] = []
    let hasUnexplainedFields = false
    for (const [logged, each] of Object.entries(changes)) {
      const name = this.#findCurrentName(logged, seq)
      const field = name === null || name === undefined ? undefined : this.model.fields.get(name)
      if (name === undefined) hasUnexplainedFields = true
      if (!field || names.includes(field.name)) continue
      if (isStorableValue(field, each.before) && isStorableValue(field, each.after))
        told.push([field.name, each])
      else names.push(field.name)
    }
    return { changes: Object.fromEntries(told), unknownFields: names, hasUnexplainedFields }
  }

  /** Null if that field is no more; undefined if nobody knows. */
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

/** Goes back through the names that a field had, to where one of them was another field's. */
function findFieldStart(currentName: string, former: readonly FormerField[]): number | undefined {
  let name = currentName
  for (const each of [...former].reverse()) {
    if (each.became === name) ({ name } = each)
    else if (each.name === name || each.name === ALL_FIELDS) return each.seq
  }
  return undefined
}
