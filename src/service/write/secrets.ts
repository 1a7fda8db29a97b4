// Handles secrets in sent data: hashes them before they are stored, and replaces them by a fingerprint where requests are compared.
import type { Catalog } from '../../model/catalog/catalog.js'
import { hasNestedDrafts, type Draft, type DraftMember } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import { isObject, type Values } from '../../model/values/value.js'
import { fingerprintSecret, hashPassword } from './password-hash.js'

/** Hashes passwords before the transaction, because code inside a transaction awaits only the database. */
export async function hashSecrets(draft: Draft): Promise<Draft> {
  if (!hasNestedDrafts(draft) && !draft.model.hasPassword) return draft
  const values: Values = { ...draft.values }
  for (const [name, value] of Object.entries(values)) {
    if (draft.model.fields.get(name)?.secret === 'password' && typeof value === 'string')
      values[name] = await hashPassword(value)
  }
  const related = new Map<string, Draft>()
  for (const [name, relatedRecord] of draft.related) related.set(name, await hashSecrets(relatedRecord))
  const lists = new Map<string, readonly DraftMember[]>()
  for (const [name, members] of draft.lists) {
    const hashed: DraftMember[] = []
    for (const member of members)
      hashed.push(member.draft ? { draft: await hashSecrets(member.draft) } : member)
    lists.set(name, hashed)
  }
  return { ...draft, values, related, lists }
}

/** Data that was sent for a record of the model. */
export interface SentRecord {
  readonly model: Model
  readonly data: unknown
}

export interface RedactedData {
  readonly data: readonly unknown[]
  readonly secret?: string | undefined
}

/** Replaces the secrets by one fingerprint, because the digest of a request is stored. */
export async function redactSecrets(
  catalog: Catalog,
  sent: readonly SentRecord[],
  salt: string,
): Promise<RedactedData> {
  const secrets: unknown[] = []
  const redacted = sent.map(({ model, data }) => redactRecord(catalog, model, data, secrets))
  return {
    data: redacted,
    secret: secrets.length === 0 ? undefined : await fingerprintSecret(JSON.stringify(secrets), salt),
  }
}

function redactRecord(catalog: Catalog, model: Model, data: unknown, secrets: unknown[]): unknown {
  if (Array.isArray(data)) return data.map((item) => redactRecord(catalog, model, item, secrets))
  if (!isObject(data)) return data
  const redacted: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(data)) {
    const field = model.fields.get(name)
    if (field?.secret !== undefined) secrets.push(name, value)
    else
      redacted[name] = field?.relation
        ? redactRecord(catalog, catalog.getTarget(field.relation), value, secrets)
        : value
  }
  return redacted
}
