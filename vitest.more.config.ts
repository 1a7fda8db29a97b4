import { defineConfig } from 'vitest/config'
import base from './vitest.config.js'

/** More of the samples that `npm test` takes, and its behaviours on the other pairs of engine and door. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/**/*.more.test.ts', 'test/behaviour/*.test.ts', 'test/faults/shared-files.test.ts'],
    exclude: [],
    provide: { targets: 'other' },
    testTimeout: 600_000,
  },
})
