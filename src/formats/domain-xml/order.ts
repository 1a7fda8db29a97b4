// The order of lists, once all models of domain XML are known: keys that nothing can be ordered by are left out, and told.
import type { FieldDefinition, ModelDefinition } from '../../model/definition/define-model.js'
import { checkField } from '../../model/definition/check-field.js'
import type { Field, Relation } from '../../model/values/field-types.js'
import { orderFault, orderFaults } from '../../model/query/list-order.js'
import { checkModel, isReadable, type Model } from '../../model/definition/model.js'
import type { Sight } from '../../model/query/visibility.js'
import { SYSTEM_MODELS } from '../../model/catalog/system-models.js'
import type { Fields } from './relations.js'
import type { ReportLine } from './report.js'

/** `-date, name` → `['-date', 'name']` */
export function orderKeysIn(attribute: string | undefined): readonly string[] {
  return (attribute ?? '')
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
}

/** Models are checked only as far as orders lead to them: there are few. */
export class Orders {
  readonly #definitions: ReadonlyMap<string, ModelDefinition>
  readonly #checked = new Map<string, Model>(SYSTEM_MODELS.map((model) => [model.name, model]))
  readonly #sight: Sight

  constructor(
    definitions: readonly ModelDefinition[],
    /** Models of other files, as far as they are known here. */
    others: ReadonlyMap<string, Fields>,
    private readonly report: (line: ReportLine) => void,
  ) {
    this.#definitions = new Map([
      ...[...others].map(([name, fields]) => [name, { name, fields }] as const),
      ...definitions.map((definition) => [definition.name, definition] as const),
    ])
    this.#sight = {
      target: (relation) => this.#target(relation),
      readable: (model, name) => readableIn(model, name),
      knows: () => true,
      writes: () => true,
      seen: () => undefined,
      mask: () => undefined,
    }
  }

  /** The definition with those keys of its lists that fit. What people have written themselves is left to be refused. */
  settle(definition: ModelDefinition, isWritten: (field: string) => boolean): ModelDefinition {
    const lists = Object.entries(definition.fields).filter(
      ([name, field]) => 'orderBy' in field && !isWritten(name),
    )
    if (lists.length === 0) return definition
    const settled = lists.map(([name, field]) => [name, this.#settled(definition.name, name, field)] as const)
    return { ...definition, fields: { ...definition.fields, ...Object.fromEntries(settled) } }
  }

  #settled(model: string, name: string, definition: FieldDefinition): FieldDefinition {
    const field = checkField(name, definition, () => undefined)
    if (!field) return definition
    const place = `${model}.${name}`
    const faults = orderFaults(this.#sight, field)
    for (const { text, fault } of faults)
      this.report({ kind: 'order-by', place, detail: `${text}: ${fault}` })
    const faulty = new Set(faults.map(({ text }) => text))
    const keys = (field.relation?.orderBy ?? []).filter((key) => !faulty.has(key))
    const ordered = withOrder(definition, keys)
    const rest = checkField(name, ordered, () => undefined)
    const fault = rest && orderFault(this.#sight, rest)
    if (fault === undefined) return ordered
    this.report({ kind: 'order-by', place, detail: fault })
    return withOrder(definition, [])
  }

  #target({ target }: Relation): Model {
    const model = this.#checked.get(target) ?? checkedOr(target, this.#definitions.get(target))
    this.#checked.set(target, model)
    return model
  }
}

function withOrder(definition: FieldDefinition, orderBy: readonly string[]): FieldDefinition {
  const rest = Object.fromEntries(Object.entries(definition).filter(([option]) => option !== 'orderBy'))
  return { ...rest, ...(orderBy.length === 0 ? {} : { orderBy }) } as FieldDefinition
}

function readableIn(model: Model, name: string): Field | undefined {
  const field = model.fields.get(name)
  return field && isReadable(field) ? field : undefined
}

/** One that has faults is refused as a whole, with all of them named: nothing is asked of its fields here. */
function checkedOr(name: string, definition: ModelDefinition | undefined): Model {
  const empty = { listFields: [], unique: [], indexes: [], together: [] }
  return (
    checkModel(definition, () => undefined) ?? {
      ...{ name, title: name, fields: new Map(), nameField: undefined, archived: false },
      ...empty,
    }
  )
}
