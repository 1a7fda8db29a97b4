// Renamed and dropped fields. Schema steps save them, so that readers of the Log can interpret old field names.
import type { Queryable, Transaction } from '../engine/database.js'
import { ALL_FIELDS, type FormerField, type FormerFields } from '../sql/field-names.js'
import { LOG_TABLE } from '../sql/log-insert.js'
import type { SchemaPlan, SchemaStep } from './plan.js'

export const FORMER_FIELD_TABLE = 'verso_former_field'

export async function readFormerFields(db: Queryable): Promise<FormerFields> {
  const rows = await db.all(`select model, name, became, seq from ${FORMER_FIELD_TABLE} order by id`)
  const former = new Map<string, FormerField[]>()
  for (const row of rows) {
    const became = row['became'] as string | null
    const field = { name: String(row['name']), became, seq: Number(row['seq']) }
    former.set(String(row['model']), [...(former.get(String(row['model'])) ?? []), field])
  }
  return former
}

/** Saves the field that a step renamed or dropped, with the last sequence number of the Log. Later Changes do not use the old name. */
export async function saveFormerFields(tx: Transaction, plan: SchemaPlan, step: SchemaStep): Promise<void> {
  const former = findFormerField(plan, step)
  if (!former) return
  const [name, became] = former
  await tx.run(
    `insert into ${FORMER_FIELD_TABLE} (model, name, became, seq) ` +
      `select ?, ?, cast(? as text), coalesce(max(seq), 0) from ${LOG_TABLE}`,
    [step.model, name, became],
  )
}

function findFormerField(
  { unusedColumns, unusedLinks }: SchemaPlan,
  step: SchemaStep,
): [string, string | null] | undefined {
  switch (step.kind) {
    case 'rename-column':
    case 'rename-link':
      return [step.from, step.to]
    case 'drop-column':
      return [step.name, null]
    case 'drop-link':
      return [step.field, null]
    case 'drop-table':
      return [ALL_FIELDS, null]
    // A column replaces links of the same name that stay unused, or links replace an unused column.
    case 'add-column':
      return unusedLinks.get(step.model)?.[step.field.name] === undefined
        ? undefined
        : [step.field.name, null]
    case 'create-link':
      return unusedColumns.get(step.model)?.[step.field] === undefined ? undefined : [step.field, null]
    default:
      return undefined
  }
}
