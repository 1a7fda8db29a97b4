// Runs the client in a page. A test bundles this file for a browser, so nothing here is imported from Node.
import { connect, type Change } from '../../../src/client/index.js'
import { equal } from './claims.js'
import { BROWSER_SCENARIOS, SCENARIOS, type ScenarioService } from './scenarios.js'

/** Runs scenarios one after the other. Returns their names, with the error of those that failed. */
export async function runScenarios(
  service: ScenarioService,
  names: readonly string[],
): Promise<Record<string, string>> {
  const results: Record<string, string> = {}
  for (const name of names) {
    const scenario = SCENARIOS[name] ?? BROWSER_SCENARIOS[name]
    results[name] = await (
      scenario?.(service) ?? Promise.reject(new Error('there is no such scenario'))
    ).then(
      () => 'passed',
      (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error)),
    )
  }
  return results
}

/** Two users with a key each make calls at the same time. Throws if one of them acts for the other. */
export async function mixUsers(url: string, keys: Readonly<Record<string, string>>): Promise<void> {
  const users = Object.entries(keys).map(([username, key]) => ({ username, verso: connect(url, { key }) }))
  const rounds = Array.from({ length: 10 }, (_, round) => round)
  const creators = rounds.flatMap((round) =>
    users.map(async ({ username, verso }) => {
      const { createdBy } = await verso.model('crm.Contact').create({ lastName: `${username} ${round}` })
      const account = await verso.login()
      return [username, (createdBy as { name: string }).name, account.username]
    }),
  )
  for (const [username, creator, account] of await Promise.all(creators))
    equal([creator, account], [username, username])
}

const followed: Change[] = []

/** Collects the changes after `since` in the background. */
export async function startFollowing(url: string, key: string, since: number): Promise<void> {
  for await (const change of connect(url, { key }).model('crm.Contact').follow({ since }))
    followed.push(change)
}

/** Lists the versions of the record that the page has followed so far. */
export function listFollowed(id: number): readonly number[] {
  return followed.filter((change) => change.id === id).map(({ version }) => version)
}
