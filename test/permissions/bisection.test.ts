import { claimNoLeak } from './claims.js'

// `bisection.all.test.ts` sends more requests, for all roles and targets.
claimNoLeak([
  { engine: 'sqlite', compat: 'none', every: 48, few: 4 },
  { engine: 'postgres', compat: 'none', every: 64, few: 4, hiders: ['foreign'] },
  { engine: 'sqlite', compat: 'axelor', every: 64, few: 4, hiders: ['rows'] },
])
