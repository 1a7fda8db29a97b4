// The service of a scenario, and what scenarios share. Nothing here is imported from Node.
import { connect } from '../../../src/client/index.js'

/** A service with the models of test/models.ts, and an administrator. */
export interface ScenarioService {
  readonly url: string
  readonly username: string
  readonly password: string
  /** An API key of the administrator, which scenarios then use instead of the password. */
  readonly key?: string
}

export type Scenario = (service: ScenarioService) => Promise<void>

/** A client of the administrator; scenarios run one after the other, so a browser may have one session for all of them. */
export function open({ url, username, password, key }: ScenarioService) {
  return connect(url, key === undefined ? { username, password } : { key })
}

let labels = 0

/** A text that no other record has. */
export function label(): string {
  return `s${Math.random().toString(36).slice(2)}-${++labels}`
}
