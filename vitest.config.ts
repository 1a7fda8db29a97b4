import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: {
    alias: [{ find: /^verso$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) }],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.{long,full}.test.ts'],
    globalSetup: 'test/setup.ts',
    pool: 'forks',
    // Most of the time is spent waiting for processes and disks: two at once, also on two cores.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    allowOnly: false,
    passWithNoTests: false,
    reporters: 'default',
  },
})
