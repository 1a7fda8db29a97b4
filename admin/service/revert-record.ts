// Reverts records, with the members of owned lists that were deleted since.
import { InvalidError } from 'verso-records/client'
import type { ModelInfo } from './model-info.js'
import { client } from './session.js'

export interface Restored {
  /** The version of the record now. */
  readonly version: number
  /** The number of members that could not be restored. */
  readonly lost: number
}

export interface RevertRequest {
  readonly model: ModelInfo
  readonly id: number
  readonly to: number
  readonly version: number
}

/** Sets a record to an earlier version. */
export async function revertRecord(request: RevertRequest): Promise<Restored> {
  const { model, id, to, version } = request
  const calls = client.model(model.name)
  try {
    return { version: (await calls.revert(id, { to, version })).version, lost: 0 }
  } catch (error) {
    if (!(error instanceof InvalidError) || !isAboutMembers(model, error)) throw error
    // The version has members of an owned list that were deleted since. Each one that is restored increments the version.
    const { restored } = await restoreMembers(request)
    if (restored === 0) throw error
    return { version: (await calls.revert(id, { to, version: version + restored })).version, lost: 0 }
  }
}

/** Brings a deleted record back. The record must be there before its members. */
export async function restoreDeleted(request: RevertRequest): Promise<Restored> {
  const { model, id, to, version } = request
  const record = await client.model(model.name).revert(id, { to, version })
  const { restored, lost } = await restoreMembers(request)
  return { version: record.version + restored, lost }
}

function isAboutMembers(model: ModelInfo, { fields }: InvalidError): boolean {
  return Object.keys(fields).some((path) =>
    model.fields.some(({ kind, name }) => kind === 'owned-list' && path.startsWith(`${name}[`)),
  )
}

/** Restores the members that a version of a record has, and that were deleted since. */
async function restoreMembers({ model, id, to }: RevertRequest): Promise<{ restored: number; lost: number }> {
  const lists = model.fields.filter(({ kind, target }) => kind === 'owned-list' && target !== undefined)
  let restored = 0
  let lost = 0
  if (lists.length === 0) return { restored, lost }
  const record = await client.model(model.name).read(id, { asOf: to })
  for (const { name, target = '' } of lists) {
    for (const member of listMembers(record, name)) {
      try {
        if (await restoreMember(target, member)) restored++
      } catch {
        // The message says how many members are missing.
        lost++
      }
    }
  }
  return { restored, lost }
}

function listMembers(record: Readonly<Record<string, unknown>>, field: string): readonly number[] {
  const members = record[field]
  return Array.isArray(members) ? (members as readonly { readonly id: number }[]).map(({ id }) => id) : []
}

/** False if the member is not deleted. */
async function restoreMember(model: string, id: number): Promise<boolean> {
  const calls = client.model(model)
  const { data } = await calls.history(id, { limit: 1 })
  const newest = data[0]
  if (newest?.action !== 'delete') return false
  await calls.revert(id, { to: newest.version - 1, version: newest.version })
  return true
}
