// Sends more requests than `bisection.test.ts`, for all roles and targets. Every request takes too long for CI:
// `VERSO_TEST_EVERY_CASE=1 npm run test:all -- test/permissions/bisection.all.test.ts` sends them.
import { ENGINES } from '../targets.js'
import { claimNoLeak, EVERY_CASE } from './claims.js'

claimNoLeak(
  EVERY_CASE
    ? ENGINES.flatMap((engine) =>
        (['none', 'axelor'] as const).map((compat) => ({ engine, compat, every: 1, few: 1 })),
      )
    : [
        { engine: 'sqlite', compat: 'none', every: 18, few: 12 },
        { engine: 'postgres', compat: 'none', every: 54, few: 12 },
        { engine: 'sqlite', compat: 'axelor', every: 54, few: 12 },
      ],
)
