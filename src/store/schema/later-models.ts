// What of a plan can wait for a later transaction.
import type { Model } from '../../model/definition/model.js'
import type { Plan, Step } from './plan.js'

/** Nothing is lost by these, and what is stored cannot make them fail. */
const HARMLESS = new Set<Step['kind']>([
  'create-table',
  'add-column',
  'create-link',
  'create-index',
  'drop-index',
  'count-records',
])

/** The models whose steps may follow, where there are more than so many with steps at all. */
export function laterModels({ steps }: Plan, models: readonly Model[], most: number): Model[] {
  const byModel = new Map<string, Step[]>()
  for (const step of steps) {
    const own = byModel.get(step.model)
    if (own) own.push(step)
    else byModel.set(step.model, [step])
  }
  if (byModel.size <= most) return []
  const first = new Set(models.filter(({ name }) => !mayWait(byModel.get(name) ?? [])))
  const needed = new Set([...first].flatMap((model) => readBy(model)))
  return models.filter((model) => byModel.has(model.name) && !first.has(model) && !needed.has(model.name))
}

function mayWait(steps: readonly Step[]): boolean {
  const isNew = steps.some((step) => step.kind === 'create-table')
  return steps.every((step) => {
    if (step.kind === 'create-index') return isNew || !step.unique
    // Computed fields are worked out from records as they are read, with their neighbours.
    return HARMLESS.has(step.kind) && (step.kind !== 'add-column' || !step.field.computed)
  })
}

/** The models whose tables a read of this one looks into. */
function readBy({ fields }: Model): string[] {
  return [...fields.values()].flatMap(({ relation }) => relation?.target ?? [])
}
