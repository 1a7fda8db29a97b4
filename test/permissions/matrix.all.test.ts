// Compares all that is read on SQLite directly, and a larger sample of the rest than `matrix.test.ts`. Every cell over every transport takes
// too long for CI: `VERSO_TEST_EVERY_CASE=1 npm run test:all -- test/permissions/matrix.all.test.ts` compares them.
import { claimMatrix, EVERY_CASE } from './claims.js'

const all = { sqlite: { direct: 1, http: 1 }, postgres: { direct: 1, http: 1 } }

claimMatrix(
  EVERY_CASE
    ? { read: all, written: all }
    : {
        read: { sqlite: { direct: 1, http: 29 }, postgres: { direct: 13, http: 37 } },
        written: { sqlite: { direct: 7, http: 41 }, postgres: { direct: 23, http: 47 } },
      },
)
