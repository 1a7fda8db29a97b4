import { claimMatrix } from './claims.js'

// Reads everything on SQLite directly, and a sample over the other transports.
claimMatrix({
  read: { sqlite: { direct: 1, http: 13 }, postgres: { direct: 7, http: 17 } },
  written: { sqlite: { direct: 3, http: 19 }, postgres: { direct: 11, http: 23 } },
})
