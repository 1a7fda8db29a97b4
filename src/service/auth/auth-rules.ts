// The records of the service itself have rules of their own. They hold wherever such a record is written, inside of others too.
import { PERMISSION_MODEL } from '../../model/catalog/auth-models.js'
import { holdsDrafts, type Draft, type Member } from '../../model/write/draft.js'
import { Faults, refusalAt } from '../../model/definition/field-errors.js'
import { USER_MODEL, type Model } from '../../model/definition/model.js'
import { isAuth } from '../../model/catalog/system-models.js'
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
  const faults = new Faults()
  const kept: Draft[] = []
  for (const draft of drafts) kept.push(await keepRulesIn(app, by, draft, faults))
  faults.refuseIfAny(model)
  return kept
}

async function keepRulesIn(app: App, by: Caller, sent: Draft, faults: Faults): Promise<Draft> {
  const draft = isAuth(sent.model) ? await checked(app, by, sent, faults) : sent
  if (!holdsDrafts(draft)) return draft
  const neighbours = new Map<string, Draft>()
  for (const [name, neighbour] of draft.neighbours)
    neighbours.set(name, await keepRulesIn(app, by, neighbour, faults))
  const lists = new Map<string, readonly Member[]>()
  for (const [name, members] of draft.lists) {
    const kept: Member[] = []
    for (const member of members)
      kept.push(member.draft ? { draft: await keepRulesIn(app, by, member.draft, faults) } : member)
    lists.set(name, kept)
  }
  return { ...draft, neighbours, lists }
}

async function checked(app: App, by: Caller, draft: Draft, faults: Faults): Promise<Draft> {
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
    throw refusalAt(model, name, 'is looked at together with the rest of its record: change one at a time')
}
