// Mutants of write plans: each omits a stage that the draft needs, or lets every write join a group commit.
import type { App, WritePlan } from '../../src/service/context/app.js'

type Stage = Exclude<keyof WritePlan, 'isPlain' | 'groupable'>

/** Plans without the stage. */
export function omittingStage(stage: Stage): (app: App) => App {
  return (app) => ({
    ...app,
    planWrite: (...input) => ({ ...app.planWrite(...input), [stage]: false }),
  })
}

/** Plans that need no stage at all. */
export function planningPlainWrites(app: App): App {
  return {
    ...app,
    planWrite: (...input) => {
      const plan = app.planWrite(...input)
      const stages = Object.keys(plan).filter((name) => name !== 'groupable' && name !== 'isPlain')
      return { ...plan, ...Object.fromEntries(stages.map((name) => [name, false])), isPlain: true }
    },
  }
}

/** Plans that let every write join a group commit. */
export function groupingEverything(app: App): App {
  return {
    ...app,
    planWrite: (context, draft, ...options) => ({
      ...app.planWrite(context, draft, ...options),
      groupable: { record: draft.key && `${draft.model.name} ${draft.key.id}` },
    }),
  }
}
