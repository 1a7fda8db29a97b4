import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: {
    alias: [{ find: /^verso$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) }],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.{more,long,full}.test.ts'],
    globalSetup: 'test/setup.ts',
    setupFiles: 'test/each-file.ts',
    provide: { targets: 'usual' },
    pool: 'forks',
    // A file finds the modules of the files before it loaded: nothing in them may remember a test.
    isolate: false,
    // Some of the time is spent waiting for processes and timers: three at once, also on two cores.
    maxWorkers: 3,
    // For a machine that does ten other things.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    allowOnly: false,
    passWithNoTests: false,
    reporters: 'default',
  },
})
