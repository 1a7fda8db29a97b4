// Mutants of the declarative rules: patterns of fields and checks of models.
import type { Model } from '../../src/model/definition/model.js'
import type { FieldRule } from '../../src/model/values/field-rules.js'
import type { Values } from '../../src/model/values/value.js'
import type { App, WriteContext } from '../../src/service/context/app.js'
import { findCheckErrors, type CheckError } from '../../src/service/hooks/record-checks.js'
import { evaluateAgainstValues } from '../../src/store/records/evaluate-values.js'

type FindErrors = (
  context: Pick<WriteContext, 'app' | 'tx'>,
  model: Model,
  values: Values,
) => Promise<readonly CheckError[]>

/** Accepts a text that contains a match. */
export function unanchored({ value, message }: FieldRule): FieldRule {
  const expression = new RegExp(value, 'u')
  return { value, message, validate: (text) => (expression.test(text) ? undefined : message) }
}

/** Anchors the pattern without a group around it, so that the anchors belong to its first and last alternative only. */
export function anchoredWithoutGroup({ value, message }: FieldRule): FieldRule {
  const expression = new RegExp(`^${value}$`, 'u')
  return { value, message, validate: (text) => (expression.test(text) ? undefined : message) }
}

/** Takes a condition that is unknown for false: a missing value breaks the rule. */
export const refusingNull: FindErrors = async ({ app, tx }, model, values) => {
  const { checks } = requireChecks(app, model)
  const conditions = checks.map(({ violation }) =>
    violation.kind === 'not' ? violation.criteria : violation,
  )
  const candidates = [{ id: 0, version: 0, values }]
  const [isTrue = []] = await evaluateAgainstValues(tx, app.tables.of(model), candidates, conditions)
  return checks.filter((_, index) => !isTrue[index])
}

/** Reports only the first of several errors. */
export const reportingOne: FindErrors = async (context, model, values) =>
  (await findCheckErrors(context, model, values)).slice(0, 1)

/** Compares all values as JavaScript compares texts. */
export const comparingTexts: FindErrors = ({ app }, model, values) => {
  const { checks } = requireChecks(app, model)
  const broken = checks.filter(({ violation }) => {
    const comparison = violation.kind === 'not' ? violation.criteria : violation
    if (comparison.kind !== 'comparison' || !comparison.otherField) return false
    const [left = '', right = ''] = [comparison.field, comparison.otherField].map(
      ({ name }) => values[name] as string,
    )
    return comparison.operator === '>=' && left < right
  })
  return Promise.resolve(broken)
}

function requireChecks({ catalog }: App, model: Model) {
  const bound = catalog.findChecks(model)
  if (!bound) throw new Error(`${model.name} has no checks`)
  return bound
}
