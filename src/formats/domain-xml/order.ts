// Removes invalid sort keys of lists and reports them. Needs all models of domain XML.
import type { ModelDefinition } from '../../model/definition/define-model.js'
import type { FieldDefinition } from '../../model/definition/field-definition.js'
import { checkField } from '../../model/definition/check-field.js'
import type { Relation } from '../../model/values/field.js'
import { validateListOrder, listInvalidOrderKeys } from '../../model/query/sort.js'
import { checkModel } from '../../model/definition/check-model.js'
import { findReadableField, Model } from '../../model/definition/model.js'
import type { Visibility } from '../../model/query/visibility.js'
import { SYSTEM_MODELS } from '../../model/catalog/system-models.js'
import type { FieldDefinitions } from './relations.js'
import type { ReportDiagnostic } from './report.js'

/** Splits `-date, name` into `['-date', 'name']`. */
export function parseOrderKeys(attribute: string | undefined): readonly string[] {
  return (attribute ?? '')
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
}

/** Checks only the models that sort keys lead to, which are few. */
export class ListOrderConverter {
  readonly #definitions: ReadonlyMap<string, ModelDefinition>
  readonly #checked = new Map<string, Model>(SYSTEM_MODELS.map((model) => [model.name, model]))
  readonly #visibility: Visibility

  constructor(
    definitions: readonly ModelDefinition[],
    /** The fields of models from other files. */
    others: ReadonlyMap<string, FieldDefinitions>,
    private readonly report: ReportDiagnostic,
  ) {
    this.#definitions = new Map([
      ...[...others].map(([name, fields]) => [name, { name, fields }] as const),
      ...definitions.map((definition) => [definition.name, definition] as const),
    ])
    this.#visibility = {
      getTarget: (relation) => this.#getTarget(relation),
      findReadable: findReadableField,
      isVisible: () => true,
      canWrite: () => true,
      visibleRecords: () => undefined,
      mask: () => undefined,
    }
  }

  /** Removes invalid keys from the lists of a definition. Keeps those of extensions, which the catalog rejects. */
  removeInvalidKeys(definition: ModelDefinition, isWritten: (field: string) => boolean): ModelDefinition {
    const lists = Object.entries(definition.fields).filter(
      ([name, field]) => 'orderBy' in field && !isWritten(name),
    )
    if (lists.length === 0) return definition
    const settled = lists.map(
      ([name, field]) => [name, this.#removeInvalidKeysFrom(definition.name, name, field)] as const,
    )
    return { ...definition, fields: { ...definition.fields, ...Object.fromEntries(settled) } }
  }

  #removeInvalidKeysFrom(model: string, name: string, definition: FieldDefinition): FieldDefinition {
    const field = checkField(name, definition, () => undefined)
    if (!field) return definition
    const location = `${model}.${name}`
    const errors = listInvalidOrderKeys(this.#visibility, field)
    for (const { text, error } of errors)
      this.report({ kind: 'order-by', location, detail: `${text}: ${error}` })
    const faulty = new Set(errors.map(({ text }) => text))
    const keys = (field.relation?.orderBy ?? []).filter((key) => !faulty.has(key))
    const ordered = withOrderBy(definition, keys)
    const rest = checkField(name, ordered, () => undefined)
    const error = rest && validateListOrder(this.#visibility, rest)
    if (error === undefined) return ordered
    this.report({ kind: 'order-by', location, detail: error })
    return withOrderBy(definition, [])
  }

  #getTarget({ target }: Relation): Model {
    const model = this.#checked.get(target) ?? checkOrEmpty(target, this.#definitions.get(target))
    this.#checked.set(target, model)
    return model
  }
}

function withOrderBy(definition: FieldDefinition, orderBy: readonly string[]): FieldDefinition {
  const rest = Object.fromEntries(Object.entries(definition).filter(([option]) => option !== 'orderBy'))
  return { ...rest, ...(orderBy.length === 0 ? {} : { orderBy }) } as FieldDefinition
}

/** Returns an empty model if the definition is invalid. The catalog reports its errors later. */
function checkOrEmpty(name: string, definition: ModelDefinition | undefined): Model {
  const model = checkModel(definition, () => undefined)
  if (model) return model
  const lists = { listFields: [], unique: [], indexes: [], mergeGroups: [], checks: [], hooks: [] }
  return new Model({ name, title: name, fields: new Map(), nameField: undefined, archived: false, ...lists })
}
