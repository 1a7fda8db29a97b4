// The records of the service itself have rules of their own. They hold wherever such a record is written, inside of others too.
import { PERMISSION_MODEL } from '../../model/catalog/auth-models.js'
import { hasNestedDrafts, type Draft, type DraftMember } from '../../model/write/draft.js'
import { FieldErrors, createFieldError } from '../../model/definition/field-errors.js'
import { USER_MODEL, type Model } from '../../model/definition/model.js'
import { isServiceModel } from '../../model/catalog/system-models.js'
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import { checkAccount } from './account-rules.js'
import type { App } from '../context/app.js'
import type { Caller } from '../context/principal.js'
import { checkWebhook, JUDGED_ALONE } from '../webhooks/rules.js'
import { checkPermission, JUDGED_TOGETHER } from './permission-rules.js'

/** The drafts as they may be written, or one Refusal that names every fault. Before secrets are hashed: nobody could judge them then. */
export async function keepRules(
  app: App,
  by: Caller,
  model: Model,
  drafts: readonly Draft[],
): Promise<Draft[]> {
  const faults = new FieldErrors()
  const kept: Draft[] = []
  for (const draft of drafts) kept.push(await keepRulesIn(app, by, draft, faults))
  faults.refuseIfAny(model)
  return kept
}

async function keepRulesIn(app: App, by: Caller, sent: Draft, faults: FieldErrors): Promise<Draft> {
  const draft = isServiceModel(sent.model) ? await checked(app, by, sent, faults) : sent
  if (!hasNestedDrafts(draft)) return draft
  const related = new Map<string, Draft>()
  for (const [name, neighbour] of draft.related)
    related.set(name, await keepRulesIn(app, by, neighbour, faults))
  const lists = new Map<string, readonly DraftMember[]>()
  for (const [name, members] of draft.lists) {
    const kept: DraftMember[] = []
    for (const member of members)
      kept.push(member.draft ? { draft: await keepRulesIn(app, by, member.draft, faults) } : member)
    lists.set(name, kept)
  }
  return { ...draft, related, lists }
}

async function checked(app: App, by: Caller, draft: Draft, faults: FieldErrors): Promise<Draft> {
  const { name } = draft.model
  if (name === USER_MODEL) return checkAccount(app, by, draft, faults)
  // Nobody else may write one, and what is wrong with it would tell them of models and fields.
  if (name === PERMISSION_MODEL && !by.rights) await checkPermission(app, draft, faults)
  if (name === WEBHOOK_MODEL && !by.rights) return checkWebhook(app, draft, faults)
  return draft
}

/** What is judged together with the rest of its record. */
const SINGLE: Readonly<Record<string, readonly string[]>> = {
  [USER_MODEL]: ['username'],
  [PERMISSION_MODEL]: JUDGED_TOGETHER,
  [WEBHOOK_MODEL]: JUDGED_ALONE,
}

export function refuseInMany({ model, values }: Draft): void {
  const name = SINGLE[model.name]?.find((each) => Object.hasOwn(values, each))
  if (name !== undefined)
    throw createFieldError(
      model,
      name,
      'is looked at together with the rest of its record: change one at a time',
    )
}
