import { claimNoLeak } from './claims.js'

// `bisection.all.test.ts` sends more requests, on both engines and in compat mode.
claimNoLeak([{ engine: 'sqlite', compat: 'none', every: 48, few: 4 }])
