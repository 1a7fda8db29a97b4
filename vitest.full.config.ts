import { defineConfig } from 'vitest/config'
import base from './vitest.long.config.js'

/** All cells of what `npm test` takes samples of, and every behaviour on every target: minutes for each engine and door. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/**/*.full.test.ts', 'test/behaviour/*.test.ts', 'test/faults/shared-files.test.ts'],
    provide: { isFull: true },
  },
})
