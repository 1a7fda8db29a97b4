// Scenarios of the client that run in Node and in a browser alike: nothing in them is imported from Node. Each throws if the client does not do
// what its name says.
import { CALL_SCENARIOS } from './call-scenarios.js'
import { CONFLICT_SCENARIOS } from './conflict-scenarios.js'
import { RECORD_SCENARIOS } from './record-scenarios.js'
import type { Scenario } from './scenario-service.js'

export { BROWSER_SCENARIOS } from './call-scenarios.js'
export type { Scenario, ScenarioService } from './scenario-service.js'

/** Scenarios by what they show. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ...RECORD_SCENARIOS,
  ...CONFLICT_SCENARIOS,
  ...CALL_SCENARIOS,
}
