// The record that a person is about to copy. It is only in memory: the history of a browser outlives a session.
import type { ModelInfo } from '../service/model-info.js'
import { getAccount } from '../service/session.js'
import { isSecret } from './drafts.js'
import { listLineFields, listLines, type RecordValues } from './record-values.js'

let copied: { readonly account: number; readonly model: string; readonly values: RecordValues } | undefined

/** Keeps the values for the next new form of the model. */
export function offerCopy(model: ModelInfo, record: RecordValues): void {
  copied = { account: getAccount().id, model: model.name, values: toCopy(model, record) }
}

/** Returns the values to copy, once. */
export function takeCopy(model: ModelInfo): RecordValues | undefined {
  const offer = copied
  copied = undefined
  return offer?.model === model.name && offer.account === getAccount().id ? offer.values : undefined
}

/** Lines of a copy are new lines. Files, secrets and what the service computes are not copied. */
function toCopy({ fields }: ModelInfo, record: RecordValues): RecordValues {
  const kept = fields.filter(
    (field) =>
      !field.isReadonly &&
      !field.isSystem &&
      !isSecret(field) &&
      field.kind !== 'file' &&
      record[field.name] !== undefined,
  )
  return Object.fromEntries(
    kept.map(({ name, kind }) => [
      name,
      kind === 'owned-list' ? listLines(record[name]).map(toNewLine) : record[name],
    ]),
  )
}

function toNewLine(line: RecordValues, index: number): RecordValues {
  const values = listLineFields(line).map((name) => [name, line[name]] as const)
  return { ...Object.fromEntries(values), $key: `copy-${index}` }
}
