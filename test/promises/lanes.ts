import type { Lane } from './lane.js'
import { BACKUP_COST_LANES } from './lanes/backup-cost.js'
import { killsLane } from './lanes/kills.js'
import { OVERLOAD_LANES } from './lanes/overload.js'
import { powerLane } from './lanes/power.js'
import { rollingLane } from './lanes/rolling.js'
import { silenceLane } from './lanes/silence.js'
import { soakPostgresLane, soakSqliteLane } from './lanes/soak.js'
import { stopsLane } from './lanes/stops.js'
import { SUITE_LANES } from './lanes/suites.js'

/** In the order of the page. */
export const LANES: readonly Lane[] = [
  killsLane,
  powerLane,
  stopsLane,
  rollingLane,
  silenceLane,
  ...OVERLOAD_LANES,
  ...BACKUP_COST_LANES,
  ...SUITE_LANES,
  soakSqliteLane,
  soakPostgresLane,
]
