// Evaluates the checks of a model. The database does so, because text, decimals and dates must compare as in searches.
import type { Model } from '../../model/definition/model.js'
import type { ModelChecks } from '../../model/query/bind-check.js'
import type { Value, Values } from '../../model/values/value.js'
import { evaluateAgainstValues } from '../../store/records/evaluate-values.js'
import type { WriteContext } from '../context/context.js'

/** An error in a record. The message continues a sentence that starts with the field's name. */
export interface CheckError {
  readonly field: string
  readonly message: string
}

/** Returns the errors of all checks that the record breaks, in the order of the model. `values` are all values after the write. */
export async function findCheckErrors(
  { app, tx }: Pick<WriteContext, 'app' | 'tx'>,
  model: Model,
  values: Readonly<Values>,
): Promise<readonly CheckError[]> {
  const bound = app.catalog.findChecks(model)
  if (!bound) return []
  const { checks } = bound
  // A check reads neither the id nor the version, which a new record does not have yet.
  const candidate = { id: 0, version: 0, values: withDecimals(bound, values) }
  const violations = checks.map(({ violation }) => violation)
  const [broken = []] = await evaluateAgainstValues(tx, app.tables.of(model), [candidate], violations)
  return checks.filter((_, index) => broken[index]).map(({ field, message }) => ({ field, message }))
}

/** Adds the integers that a check compares with decimals, as decimals. */
function withDecimals({ widened }: ModelChecks, values: Readonly<Values>): Values {
  const decimals = widened.map(({ from, field }) => [field.name, toDecimal(values[from] ?? null)] as const)
  return { ...values, ...Object.fromEntries(decimals) }
}

function toDecimal(value: Value): Value {
  return typeof value === 'number' ? String(value) : null
}
