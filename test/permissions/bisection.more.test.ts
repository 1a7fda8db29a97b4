import { claimTwoWorlds } from './claims.js'

claimTwoWorlds([
  { engine: 'sqlite', compat: 'none', every: 2, few: 60 },
  { engine: 'postgres', compat: 'none', every: 6, few: 60 },
  { engine: 'sqlite', compat: 'axelor', every: 6, few: 60 },
])
