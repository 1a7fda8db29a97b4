import { defineConfig } from 'vitest/config'
import base from './vitest.long.config.js'

/** All cells of what `npm test` takes samples of: minutes for each engine and door. */
export default defineConfig({
  ...base,
  test: { ...base.test, include: ['test/**/*.full.test.ts'] },
})
