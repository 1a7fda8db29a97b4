// Gapless sequences: a number is taken in the transaction that uses it, so a rollback returns the number.
import type { Field, Sequence } from '../../model/values/field.js'
import type { Model } from '../../model/definition/model.js'
import type { Queryable, Transaction } from '../engine/database.js'
import { quoteIdentifier, toTableName } from '../engine/names.js'

export const SEQUENCE_TABLE = 'verso_sequence'
const SEQUENCE_SCAN_ROWS = 1_000
/** Ends the name of a sequence whose field is currently not a sequence field. No field name can contain a space. */
const INACTIVE_SUFFIX = ' resting'

/** Takes the next number and returns the text to store. Other transactions that take a number wait until this transaction ends. */
export async function takeNextNumber(tx: Transaction, model: Model, field: Field): Promise<string> {
  const { sequence } = field
  const name = buildSequenceName(model, field)
  tx.requireExclusive()
  await tx.run(`update ${SEQUENCE_TABLE} set next = next + 1 where name = ?`, [name])
  const [row] = await tx.all(`select next from ${SEQUENCE_TABLE} where name = ?`, [name])
  if (!row || !sequence) throw new Error(`${name} has no sequence`)
  const { prefix, suffix, padding } = sequence
  return prefix + String(Number(row['next']) - 1).padStart(padding, '0') + suffix
}

/** Returns true if `createSequences` has nothing to do. */
export async function areSequencesCurrent(db: Queryable, models: readonly Model[]): Promise<boolean> {
  const stored = await readSequences(db)
  const isCurrent = (model: Model, field: Field) =>
    stored.has(buildSequenceName(model, field)) === Boolean(field.sequence)
  return models.every((model) => [...model.fields.values()].every((field) => isCurrent(model, field)))
}

/** Creates missing sequences. Each starts after the numbers that were taken before and after those that its field contains. */
export async function createSequences(tx: Transaction, models: readonly Model[]): Promise<void> {
  const stored = await readSequences(tx)
  for (const model of models) {
    for (const field of model.fields.values()) {
      const name = buildSequenceName(model, field)
      if (!field.sequence) {
        // Users can now write any text into the field. If it becomes a sequence field again, the scan of its values is repeated.
        if (stored.has(name)) await renameSequence(tx, name, name + INACTIVE_SUFFIX)
        continue
      }
      if (stored.has(name)) continue
      const former = [name + INACTIVE_SUFFIX, `${model.name}.${field.renamedFrom ?? ''}`].filter((other) =>
        stored.has(other),
      )
      const nextUnused = (await findGreatestNumber(tx, model, field, field.sequence)) + 1
      const next = Math.max(field.sequence.next, nextUnused, ...former.map((other) => stored.get(other) ?? 0))
      for (const other of former) await tx.run(`delete from ${SEQUENCE_TABLE} where name = ?`, [other])
      await tx.run(`insert into ${SEQUENCE_TABLE} (name, next) values (?, ?)`, [name, next])
    }
  }
}

/** Parses the number in a value of a sequence field; undefined if the sequence cannot have produced the value. */
export function parseSequenceNumber({ sequence }: Field, text: string): number | undefined {
  return sequence && parseAffixedNumber(text, sequence.prefix, sequence.suffix)
}

/** Skips all numbers up to `last`, because imported records use them. */
export async function reserveNumbersUpTo(
  tx: Transaction,
  model: Model,
  field: Field,
  last: number,
): Promise<void> {
  const name = buildSequenceName(model, field)
  await tx.run(`update ${SEQUENCE_TABLE} set next = ? where name = ? and next <= ?`, [last + 1, name, last])
}

/** Reads the next number of each sequence, by name. */
async function readSequences(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.all(`select name, next from ${SEQUENCE_TABLE}`)
  return new Map(rows.map((row) => [String(row['name']), Number(row['next'])]))
}

async function renameSequence(tx: Transaction, from: string, to: string): Promise<void> {
  await tx.run(`update ${SEQUENCE_TABLE} set name = ? where name = ?`, [to, from])
}

function buildSequenceName(model: Model, field: Field): string {
  return `${model.name}.${field.name}`
}

async function findGreatestNumber(
  db: Queryable,
  model: Model,
  field: Field,
  { prefix, suffix }: Sequence,
): Promise<number> {
  let max = -1
  for (let last = 0; ;) {
    const rows = await db.all(
      `select "id", ${quoteIdentifier(field.name)} as "number" from ${quoteIdentifier(toTableName(model.name))} where "id" > ? order by "id" limit ?`,
      [last, SEQUENCE_SCAN_ROWS],
    )
    for (const row of rows) {
      const number = parseAffixedNumber(String(row['number']), prefix, suffix)
      if (number !== undefined) max = Math.max(max, number)
      last = Number(row['id'])
    }
    if (rows.length < SEQUENCE_SCAN_ROWS) return max
  }
}

function parseAffixedNumber(text: string, prefix: string, suffix: string): number | undefined {
  if (!text.startsWith(prefix) || !text.endsWith(suffix)) return undefined
  const digits = text.slice(prefix.length, text.length - suffix.length)
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined
}
