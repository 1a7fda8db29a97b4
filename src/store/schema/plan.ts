// A schema plan: the steps that change the tables.
import type { Field } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import type { Queryable } from '../engine/database.js'
import type { ColumnSnapshot } from './snapshot.js'

export type SchemaStep = { readonly model: string } & (
  | { readonly kind: 'create-table'; readonly declared: Model }
  | { readonly kind: 'add-column'; readonly declared: Model; readonly field: Field }
  | { readonly kind: 'rename-column'; readonly from: string; readonly to: string }
  | { readonly kind: 'drop-column'; readonly name: string }
  | { readonly kind: 'drop-table' }
  | {
      readonly kind: 'create-index'
      readonly name: string
      readonly unique: boolean
      readonly fields: readonly string[]
    }
  | { readonly kind: 'drop-index'; readonly name: string; readonly fields: readonly string[] }
  | { readonly kind: 'create-link'; readonly field: string }
  | { readonly kind: 'rename-link'; readonly from: string; readonly to: string }
  | { readonly kind: 'drop-link'; readonly field: string }
  | { readonly kind: 'count-records'; readonly declared: Model }
)

export interface SchemaPlan {
  readonly steps: readonly SchemaStep[]
  /** Changes that would delete data, each with its alternatives. */
  readonly errors: readonly string[]
  /** Data that stays although no model declares it. */
  readonly notes: readonly string[]
  /** Empty columns that no field declares, by model. They stay. */
  readonly unusedColumns: ReadonlyMap<string, Readonly<Record<string, ColumnSnapshot>>>
  /** Targets of empty link tables that no field declares, by model and field. They stay. */
  readonly unusedLinks: ReadonlyMap<string, Readonly<Record<string, string>>>
}

/** A plan to which the planner adds steps. */
export interface SchemaPlanDraft extends SchemaPlan {
  readonly steps: SchemaStep[]
  readonly errors: string[]
  readonly notes: string[]
  readonly unusedColumns: Map<string, Record<string, ColumnSnapshot>>
  readonly unusedLinks: Map<string, Record<string, string>>
}

/** The values that the functions of the planner share. */
export interface PlanContext {
  readonly db: Queryable
  /** The models and fields whose data may be deleted. The planner removes each name that it has used. */
  readonly allowedDrops: Set<string>
  readonly draft: SchemaPlanDraft
}

/** Stands in a command for the settings that only its caller knows. */
export const SAME_SETTINGS = '(with the same --models and --db)'

/** The command that deletes the data of a model or field. */
export function buildDropCommand(name: string): string {
  return `verso schema --apply --drop ${name} ${SAME_SETTINGS}`
}

/** Names of tables and columns are case-insensitive in SQLite. */
export function isSameStoredName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

/** Existing records get the default of a new field. Without one, their value is null, also if the field is required. */
function describeMissingValues({ declared, field }: Extract<SchemaStep, { kind: 'add-column' }>): string {
  const isMissing = declared.requiredInputs.some(({ name }) => name === field.name)
  return isMissing ? '; required, but existing records have no value' : ''
}

/** Describes a step in one line of text. */
export function describeStep(step: SchemaStep): string {
  switch (step.kind) {
    case 'create-table':
      return `+ ${step.model}: new table`
    case 'add-column':
      return `+ ${step.model}.${step.field.name}: new column (${step.field.type})${describeMissingValues(step)}`
    case 'rename-column':
      return `~ ${step.model}.${step.from}: renamed to ${step.to}`
    case 'drop-column':
      return `- ${step.model}.${step.name}: column dropped`
    case 'drop-table':
      return `- ${step.model}: table dropped`
    case 'create-index':
      return `+ ${step.model}: ${step.unique ? 'unique ' : ''}index on ${step.fields.join(', ')}`
    case 'create-link':
      return `+ ${step.model}.${step.field}: new table of links`
    case 'rename-link':
      return `~ ${step.model}.${step.from}: its links renamed to ${step.to}`
    case 'drop-link':
      return `- ${step.model}.${step.field}: links dropped`
    case 'drop-index':
      return `- ${step.model}: index on ${step.fields.join(', ')} dropped`
    case 'count-records':
      return `~ ${step.model}: its records are counted`
  }
}

/** Steps that delete no data and cannot fail because of stored data. */
const DEFERRABLE_KINDS = new Set<SchemaStep['kind']>([
  'create-table',
  'add-column',
  'create-link',
  'create-index',
  'drop-index',
  'count-records',
])

/** Finds the models whose steps can run later. None if at most `maxModels` models have steps. */
export function findDeferrableModels(
  { steps }: SchemaPlan,
  models: readonly Model[],
  maxModels: number,
): Model[] {
  const byModel = new Map<string, SchemaStep[]>()
  for (const step of steps) {
    const own = byModel.get(step.model)
    if (own) own.push(step)
    else byModel.set(step.model, [step])
  }
  if (byModel.size <= maxModels) return []
  const first = new Set(models.filter(({ name }) => !canDefer(byModel.get(name) ?? [])))
  const needed = new Set([...first].flatMap((model) => listRelationTargets(model)))
  return models.filter((model) => byModel.has(model.name) && !first.has(model) && !needed.has(model.name))
}

function canDefer(steps: readonly SchemaStep[]): boolean {
  const isNew = steps.some((step) => step.kind === 'create-table')
  return steps.every((step) => {
    if (step.kind === 'create-index') return isNew || !step.unique
    // Filling a computed field reads records with their related records, so the tables of those must exist.
    return DEFERRABLE_KINDS.has(step.kind) && (step.kind !== 'add-column' || !step.field.computed)
  })
}

/** Lists the models whose tables a read of this model joins. */
function listRelationTargets({ fields }: Model): string[] {
  return [...fields.values()].flatMap(({ relation }) => relation?.target ?? [])
}
