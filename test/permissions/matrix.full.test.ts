import { claimMatrix } from './claims.js'

const all = { sqlite: { direct: 1, http: 1 }, postgres: { direct: 1, http: 1 } }
claimMatrix({ read: all, written: all })
