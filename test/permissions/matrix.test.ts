import { claimMatrix } from './claims.js'

// A sample, smaller over the more expensive transports. `matrix.all.test.ts` compares more.
claimMatrix({
  read: { sqlite: { direct: 7, http: 41 }, postgres: { direct: 31, http: 61 } },
  written: { sqlite: { direct: 13, http: 79 }, postgres: { direct: 61, http: 97 } },
})
