// Requests to the service, as the user of the session cookie or of an entered API key.

const basePath = document.documentElement.dataset['basePath'] ?? ''

/** The address of the service as this browser reaches it. */
export const baseUrl = location.origin + basePath
export const serverPath = basePath === '' ? '/' : basePath

/** The key stays in memory: closing the page forgets it. */
let apiKey = ''

/** @returns {Record<string, string>} */
export function buildCredentials() {
  return apiKey === '' ? {} : { Authorization: `Bearer ${apiKey}` }
}

export function hasKey() {
  return apiKey !== ''
}

/**
 * Returns the body of a response, or fails with the message of the service.
 * @param {string} path
 * @param {{ method?: string, body?: unknown }} [options]
 * @returns {Promise<Record<string, unknown>>}
 */
export async function callService(path, { method = 'GET', body } = {}) {
  const response = await fetch(baseUrl + path, {
    method,
    headers: {
      Accept: 'application/json',
      ...buildCredentials(),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error('The service cannot be reached. Check that it runs, then try again.')
  })
  const json = await response.json().catch(() => ({}))
  // With --compat axelor errors about records have the HTTP status 200.
  if (response.ok && !(json.status < 0)) return json
  const message = json.data?.message ?? `The service responded with status ${response.status}`
  throw new Error(message)
}

/** Returns the name of the user, or undefined if nobody is logged in. */
export async function findUser() {
  const info = await callService('/ws/public/app/info')
  const user = /** @type {{ name?: string } | undefined} */ (info['user'])
  return user?.name
}

/**
 * @param {string} username
 * @param {string} password
 */
export async function logIn(username, password) {
  await callService('/callback', { method: 'POST', body: { username, password } })
}

/** Keeps the key only if the service accepts it. @param {string} key */
export async function enterKey(key) {
  apiKey = key.trim()
  try {
    await callService('/ws/meta/models')
  } catch (error) {
    apiKey = ''
    throw error
  }
}

export async function logOut() {
  if (hasKey()) apiKey = ''
  else await callService('/logout', { method: 'POST' })
}

const KEY_LIFE_MS = 24 * 60 * 60 * 1000

/** Creates an API key of the user for the snippets. */
export async function createSnippetKey() {
  const expiresOn = new Date(Date.now() + KEY_LIFE_MS).toISOString()
  const name = `API reference ${expiresOn.slice(0, 19)}`
  const { data } = await callService('/ws/me/keys', { method: 'POST', body: { data: { name, expiresOn } } })
  const [created] = /** @type {{ key: string }[]} */ (data)
  return created?.key ?? ''
}

/**
 * Returns an existing record of a model for the examples, or only the model if there is no record that the user may see.
 * @param {string} model
 * @returns {Promise<import('./request-values.mjs').Sample>}
 */
export async function findSample(model) {
  try {
    const { data } = await callService(`/ws/rest/${encodeURIComponent(model)}?limit=1`)
    const [record] = /** @type {{ id: number, version: number }[]} */ (data)
    return record ? { model, id: record.id, version: record.version } : { model }
  } catch {
    // The examples of the document stay useful.
    return { model }
  }
}

const SYSTEM_MODEL = /^(verso|com\.axelor\.meta)\./
/** An empty database needs no request for each of its models. */
const MAX_SEARCHED_MODELS = 5

/**
 * Returns an existing record of any model for the examples of general calls. Prefers models of the application.
 * @param {string[]} models
 * @returns {Promise<import('./request-values.mjs').Sample>}
 */
export async function findAnySample(models) {
  const own = models.filter((model) => !SYSTEM_MODEL.test(model))
  const [first, ...others] = own.length > 0 ? own : models
  if (first === undefined) return {}
  for (const model of [first, ...others].slice(0, MAX_SEARCHED_MODELS)) {
    const sample = await findSample(model)
    if (sample.id !== undefined) return sample
  }
  return { model: first }
}
