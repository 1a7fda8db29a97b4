import { claimMatrix } from './claims.js'

// A sample, smaller over the more expensive transports. `matrix.all.test.ts` compares more.
claimMatrix({
  read: { sqlite: { direct: 17, http: 71 }, postgres: { direct: 47, http: 97 } },
  written: { sqlite: { direct: 29, http: 113 }, postgres: { direct: 83, http: 127 } },
})
