// What of a plan can wait for a later transaction.
import type { Model } from '../../model/definition/model.js'
import type { SchemaPlan, SchemaStep } from './plan.js'

/** Nothing is lost by these, and what is stored cannot make them fail. */
const DEFERRABLE_KINDS = new Set<SchemaStep['kind']>([
  'create-table',
  'add-column',
  'create-link',
  'create-index',
  'drop-index',
  'count-records',
])

/** The models whose steps may follow, where there are more than so many with steps at all. */
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
    // Computed fields are worked out from records as they are read, with their neighbours.
    return DEFERRABLE_KINDS.has(step.kind) && (step.kind !== 'add-column' || !step.field.computed)
  })
}

/** The models whose tables a read of this one looks into. */
function listRelationTargets({ fields }: Model): string[] {
  return [...fields.values()].flatMap(({ relation }) => relation?.target ?? [])
}
