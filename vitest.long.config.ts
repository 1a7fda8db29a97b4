import { defineConfig } from 'vitest/config'
import base from './vitest.config.js'

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/**/*.long.test.ts'],
    exclude: [],
    fileParallelism: false,
    testTimeout: 600_000,
  },
})
