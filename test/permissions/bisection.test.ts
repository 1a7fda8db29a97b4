import { claimTwoWorlds } from './claims.js'

// `bisection.long.test.ts` asks everything.
claimTwoWorlds([
  { engine: 'sqlite', compat: 'none', every: 2 },
  { engine: 'postgres', compat: 'none', every: 6 },
  { engine: 'sqlite', compat: 'axelor', every: 6 },
])
