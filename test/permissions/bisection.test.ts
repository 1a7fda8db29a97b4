import { claimNoLeak } from './claims.js'

// `bisection.all.test.ts` sends more requests, for all roles and targets.
claimNoLeak([
  { engine: 'sqlite', compat: 'none', every: 24, few: 8 },
  { engine: 'postgres', compat: 'none', every: 32, few: 8, hiders: ['foreign'] },
  { engine: 'sqlite', compat: 'axelor', every: 32, few: 8, hiders: ['rows'] },
])
