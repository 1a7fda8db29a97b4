import { claimMatrix } from './claims.js'

// A sample, smaller over the more expensive transports. `matrix.all.test.ts` compares more.
claimMatrix({
  read: { sqlite: { direct: 31, http: 139 }, postgres: { direct: 97, http: 193 } },
  written: { sqlite: { direct: 59, http: 227 }, postgres: { direct: 167, http: 251 } },
})
