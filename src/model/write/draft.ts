// A record to write, and the related records to write with it, as parsed from client data.
import { VersoError } from '../../errors.js'
import type { FieldErrors } from '../definition/field-errors.js'
import type { Model } from '../definition/model.js'
import type { Field } from '../values/field.js'
import { isObject, type Values, type JsonObject } from '../values/value.js'
import type { ClaimedMember } from './inverse-input.js'

export const MAX_OWNED_LIST_MEMBERS = 1_000
/** Limits for the nesting of records and for their number in a request. */
export const MAX_DRAFT_DEPTH = 8
export const MAX_DRAFT_RECORDS = 1_000
/** The limit for all lists of a request together. */
export const MAX_DRAFT_LIST_ITEMS = 10_000
/** Hashing a password takes as much CPU time as a login. */
export const MAX_DRAFT_PASSWORDS = 16
/** Exceeds the number of fields of any model; limits the work that a request can cause. */
export const MAX_DRAFT_KEYS = 2_000

/** The parsed input of one record. */
export interface Draft {
  readonly model: Model
  /** The id of the record to update and the version that the change is based on; undefined for a create. */
  readonly key: VersionedId | undefined
  /** The new values of the record's own fields. References to records that this write creates are absent. */
  readonly values: Values
  /** Related records of to-one fields. They are written before this record. */
  readonly related: ReadonlyMap<string, Draft>
  /** The owned lists in the input. */
  readonly lists: ReadonlyMap<string, readonly DraftMember[]>
  /** Related records that the client sent back as it had read them, by field. */
  readonly copies: ReadonlyMap<string, readonly ReferenceCopy[]>
  /** Inverse relations that existing clients send back. The transaction compares them with the stored ones and never writes them. */
  readonly inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
  /** The request contains this record with its version more than once. The record must then not change. */
  readonly isDuplicate?: boolean
  /** JSON fields whose values are merge patches of the stored values. */
  readonly patched?: ReadonlySet<string>
  /** The position in the request, as a prefix for field names: `addresses[0].` */
  readonly path: string
}

/** The data of at least one record is invalid. */
export class InvalidDraftError extends VersoError {
  /** The model of all invalid records; undefined if there are several. */
  readonly model: Model | undefined

  constructor(
    errors: FieldErrors,
    /** The drafts without their invalid values. */
    readonly drafts: readonly Draft[],
    invalidModels: ReadonlySet<Model>,
  ) {
    const model = invalidModels.size === 1 ? [...invalidModels][0] : undefined
    const { kind, message, details } = errors.toError(model)
    super(kind, message, details)
    this.model = model
  }
}

export interface VersionedId {
  readonly id: number
  readonly version: number
}

/** The input of one of several records; `key` is undefined for a create. */
export interface RecordInput {
  readonly data: unknown
  readonly key: VersionedId | undefined
}

/** The input of an update: the id and the version that it is based on, and the changed fields. */
export interface VersionedInput extends RecordInput {
  readonly key: VersionedId
}

/** A related record as an earlier answer contained it. It is only a link and changes nothing. */
export interface ReferenceCopy {
  readonly id: number
  readonly version: number
  readonly data: JsonObject
  readonly path: string
}

/** A member of an owned list: a stored record by id, or a record to write. */
export type DraftMember = { readonly id: number; readonly draft?: never } | { readonly draft: Draft }

/** Returns the id of a stored member; undefined for one that the write creates. */
export function getMemberId(member: DraftMember): number | undefined {
  return member.draft ? member.draft.key?.id : member.id
}

/** True if the draft contains other records to write. A list of ids contains none. */
export function hasNestedDrafts({ related, lists }: Draft): boolean {
  if (related.size > 0) return true
  for (const members of lists.values()) if (members.some(({ draft }) => draft)) return true
  return false
}

/** Lists the related records to write, one level deep. */
export function listNestedDrafts({ related, lists }: Draft): Draft[] {
  const members = [...lists.values()].flat().flatMap((member) => member.draft ?? [])
  return [...related.values(), ...members]
}

/** Lists the draft and all related records to write. */
export function listAllDrafts(draft: Draft): Draft[] {
  return [draft, ...listNestedDrafts(draft).flatMap(listAllDrafts)]
}

/** Maps a draft, and then the drafts of its related records. */
export function mapDrafts(draft: Draft, map: (draft: Draft) => Draft): Draft {
  const mapped = map(draft)
  if (!hasNestedDrafts(mapped)) return mapped
  const mapMember = (member: DraftMember) => (member.draft ? { draft: mapDrafts(member.draft, map) } : member)
  const related = new Map<string, Draft>()
  for (const [name, nested] of mapped.related) related.set(name, mapDrafts(nested, map))
  const lists = new Map<string, readonly DraftMember[]>()
  for (const [name, members] of mapped.lists) lists.set(name, members.map(mapMember))
  return { ...mapped, related, lists }
}

/** Does the same with a function that waits. It must not replace related records. */
export async function mapDraftsAsync(draft: Draft, map: (draft: Draft) => Promise<Draft>): Promise<Draft> {
  if (!hasNestedDrafts(draft)) return map(draft)
  const mapped = new Map<Draft, Draft>()
  const mapTree = async (each: Draft): Promise<void> => {
    mapped.set(each, await map(each))
    for (const nested of listNestedDrafts(each)) await mapTree(nested)
  }
  await mapTree(draft)
  return mapDrafts(draft, (each) => mapped.get(each) ?? each)
}

/** The owner of the list that contains the record. It determines one of the record's references. */
export interface DraftParent {
  readonly reference: string | undefined
  readonly id: number | undefined
}

/** The position of a record in the request. */
export interface DraftPosition {
  /** A prefix for field names: `addresses[0].` */
  readonly path: string
  /** 1 for the records of the request itself. */
  readonly depth: number
  readonly parent: DraftParent | undefined
}

/** A draft while it is being parsed. */
export interface MutableDraft extends Draft {
  inverses?: ReadonlyMap<string, readonly ClaimedMember[]>
  isDuplicate?: boolean
  readonly related: Map<string, Draft>
  readonly lists: Map<string, readonly DraftMember[]>
  readonly copies: Map<string, ReferenceCopy[]>
}

/** Adds the input to the copies if it is a related record as an earlier answer contained it. */
export function addReferenceCopy(draft: MutableDraft, { name }: Field, input: unknown, path: string): void {
  if (!isObject(input) || typeof input['$version'] !== 'number' || typeof input['id'] !== 'number') return
  // A related record with `version` is an update, not a copy.
  if ((input['version'] ?? null) !== null) return
  const copy = { id: input['id'], version: input['$version'], data: input, path }
  const copies = draft.copies.get(name)
  if (copies) copies.push(copy)
  else draft.copies.set(name, [copy])
}
