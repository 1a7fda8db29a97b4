import { defineConfig } from 'vitest/config'
import base from './vitest.config.js'

/** More of the samples that `npm test` takes. */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['test/**/*.more.test.ts'], exclude: [], testTimeout: 600_000 },
})
