// Selects the steps of a plan that can run in a later transaction.
import type { Model } from '../../model/definition/model.js'
import type { SchemaPlan, SchemaStep } from './plan.js'

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
