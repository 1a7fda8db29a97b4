import { claimMatrix } from './claims.js'

// Everything is read on SQLite; through the other doors every so many cells.
claimMatrix({
  read: { sqlite: { direct: 1, http: 13 }, postgres: { direct: 7, http: 17 } },
  written: { sqlite: { direct: 3, http: 19 }, postgres: { direct: 11, http: 23 } },
})
