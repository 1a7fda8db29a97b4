// Handles secrets in sent data: hashes them before they are stored, and replaces them by a fingerprint where requests are compared.
import type { Catalog } from '../../model/catalog/catalog.js'
import { hasNestedDrafts, mapDraftsAsync, type Draft } from '../../model/write/draft.js'
import type { Model } from '../../model/definition/model.js'
import { isObject, type Values } from '../../model/values/value.js'
import { fingerprintSecret, hashPassword } from './password-hash.js'

/** Hashes passwords before the transaction, because code inside a transaction awaits only the database. */
export async function hashSecrets(draft: Draft): Promise<Draft> {
  if (!hasNestedDrafts(draft) && !draft.model.hasPassword) return draft
  return mapDraftsAsync(draft, hashPasswords)
}

async function hashPasswords(draft: Draft): Promise<Draft> {
  const { model } = draft
  if (!model.hasPassword) return draft
  const values: Values = { ...draft.values }
  for (const [name, value] of Object.entries(values)) {
    if (model.fields.get(name)?.secret === 'password' && typeof value === 'string')
      values[name] = await hashPassword(value)
  }
  return { ...draft, values }
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
