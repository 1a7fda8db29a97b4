// Reads the descriptions of models from a running service.
import { connect } from '../../client/connect.js'
import { RequestError } from '../../client/errors.js'
import type { Client } from '../../client/client-types.js'
import { ConfigError } from '../../errors.js'
import { parseDescription } from '../../formats/described-field.js'
import type { ModelDescription } from '../../formats/model-description.js'
import { isArray, isObject } from '../../model/values/value.js'
import { readPassword } from '../terminal/ask-password.js'

const CONCURRENT_REQUESTS = 8
const NOTHING_READ = 'The models of the service could not be read'

interface RemoteLogin {
  readonly key: string | undefined
  readonly user: string | undefined
  readonly passwordStdin: boolean
  /** The password from the environment. */
  readonly password: string | undefined
}

/** Returns the descriptions of all models that the user may see. */
export async function readDescriptions(
  url: string,
  login: RemoteLogin,
): Promise<readonly ModelDescription[]> {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new ConfigError(NOTHING_READ, [
      `--url must be an address such as http://localhost:8080, not "${url}"`,
    ])
  const client = connect(url, await askCredentials(login))
  try {
    const names = await listModels(client)
    return await mapConcurrently(names, (name) => fetchDescription(client, name))
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    throw new ConfigError(NOTHING_READ, [`${url}: ${error.message}`])
  } finally {
    // The session ends by itself if this fails.
    if (login.key === undefined) await client.logout().catch(() => undefined)
  }
}

async function askCredentials({ key, user, passwordStdin, password }: RemoteLogin) {
  if (key !== undefined) return { key }
  if (user === undefined)
    throw new ConfigError(NOTHING_READ, ['set VERSO_TYPES_KEY to an API key, or name a user with --user'])
  const isGiven = !passwordStdin && password !== undefined
  return { username: user, password: isGiven ? password : await readPassword(user, passwordStdin) }
}

async function listModels(client: Client): Promise<readonly string[]> {
  const data = await readData(client, '/ws/meta/models')
  if (isArray(data) && data.every((name) => typeof name === 'string')) return data
  throw new ConfigError(NOTHING_READ, ['the service does not list its models; is it a Verso service?'])
}

async function fetchDescription(client: Client, name: string): Promise<ModelDescription> {
  const description = parseDescription(await readData(client, `/ws/meta/fields/${encodeURIComponent(name)}`))
  if (description) return description
  throw new ConfigError(NOTHING_READ, [`the service does not describe the model ${name}`])
}

async function readData(client: Client, path: string): Promise<unknown> {
  const { body } = await client.request('GET', path)
  return isObject(body) ? body['data'] : undefined
}

/** Calls the function for all items, some of them at the same time; the results keep the order. */
async function mapConcurrently<T, R>(
  items: readonly T[],
  run: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = []
  const entries = items.entries()
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await run(item)
  }
  await Promise.all(Array.from({ length: CONCURRENT_REQUESTS }, work))
  return results
}
