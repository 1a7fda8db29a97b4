import { ENGINES } from '../targets.js'
import { claimTwoWorlds } from './claims.js'

claimTwoWorlds(
  ENGINES.flatMap((engine) =>
    (['none', 'axelor'] as const).map((compat) => ({ engine, compat, every: 1, few: 1 })),
  ),
)
