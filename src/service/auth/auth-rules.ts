// The records of the service itself have rules of their own. They hold wherever such a record is written, inside of others too.
import { PERMISSION_MODEL } from '../../model/catalog/auth-models.js'
import { hasNestedDrafts, type Draft, type DraftMember } from '../../model/write/draft.js'
import { FieldErrors, createFieldError } from '../../model/definition/field-errors.js'
import { USER_MODEL, type Model } from '../../model/definition/model.js'
import { isServiceModel } from '../../model/catalog/system-models.js'
import { WEBHOOK_MODEL } from '../../model/catalog/webhook-models.js'
import { validateUser } from './account-rules.js'
import type { App } from '../context/app.js'
import type { Principal } from '../context/principal.js'
import { validateWebhook, WEBHOOK_SINGLE_RECORD_FIELDS } from '../webhooks/rules.js'
import { validatePermission, PERMISSION_DEPENDENT_FIELDS } from './permission-rules.js'
import { createContext, type Context } from '../context/context.js'

/** The drafts as they may be written, or one Refusal that names every fault. Before secrets are hashed: nobody could judge them then. */
export async function validateSystemDrafts(
  app: App,
  principal: Principal,
  model: Model,
  drafts: readonly Draft[],
): Promise<Draft[]> {
  const errors = new FieldErrors()
  const validated: Draft[] = []
  for (const draft of drafts)
    validated.push(await validateDraftTree(createContext(app, principal), draft, errors))
  errors.refuseIfAny(model)
  return validated
}

async function validateDraftTree(context: Context, sent: Draft, errors: FieldErrors): Promise<Draft> {
  const draft = isServiceModel(sent.model) ? await validateSystemDraft(context, sent, errors) : sent
  if (!hasNestedDrafts(draft)) return draft
  const related = new Map<string, Draft>()
  for (const [name, relatedRecord] of draft.related)
    related.set(name, await validateDraftTree(context, relatedRecord, errors))
  const lists = new Map<string, readonly DraftMember[]>()
  for (const [name, members] of draft.lists) {
    const validated: DraftMember[] = []
    for (const member of members)
      validated.push(
        member.draft ? { draft: await validateDraftTree(context, member.draft, errors) } : member,
      )
    lists.set(name, validated)
  }
  return { ...draft, related, lists }
}

async function validateSystemDraft(context: Context, draft: Draft, errors: FieldErrors): Promise<Draft> {
  const { principal, app } = context
  const { name } = draft.model
  if (name === USER_MODEL) return validateUser(context, draft, errors)
  // Nobody else may write one, and what is wrong with it would tell them of models and fields.
  if (name === PERMISSION_MODEL && !principal.permissions) await validatePermission(app, draft, errors)
  if (name === WEBHOOK_MODEL && !principal.permissions) return validateWebhook(app, draft, errors)
  return draft
}

/** What is judged together with the rest of its record. */
const SINGLE_RECORD_FIELDS: Readonly<Record<string, readonly string[]>> = {
  [USER_MODEL]: ['username'],
  [PERMISSION_MODEL]: PERMISSION_DEPENDENT_FIELDS,
  [WEBHOOK_MODEL]: WEBHOOK_SINGLE_RECORD_FIELDS,
}

export function refuseMassUpdateFields({ model, values }: Draft): void {
  const name = SINGLE_RECORD_FIELDS[model.name]?.find((each) => Object.hasOwn(values, each))
  if (name !== undefined)
    throw createFieldError(
      model,
      name,
      'is looked at together with the rest of its record: change one at a time',
    )
}
