import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.js'

export default defineConfig({
  resolve: {
    alias: [
      { find: /^verso-records$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) },
      {
        find: /^verso-records\/client$/,
        replacement: fileURLToPath(new URL('src/client/index.ts', import.meta.url)),
      },
      {
        find: /^verso-records\/react-admin$/,
        replacement: fileURLToPath(new URL('src/react-admin/data-provider.ts', import.meta.url)),
      },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.all.test.ts'],
    globalSetup: ['test/setup.ts', 'test/browser-report.ts'],
    setupFiles: 'test/each-file.ts',
    provide: { targets: 'usual' },
    // Node loads the built copies with a mistake: Vite would transform hundreds of files for each.
    server: { deps: { external: [/\/mutant-[^/]+\/dist\//] } },
    pool: 'forks',
    // A worker keeps its modules from file to file, so no module may hold the state of a test.
    isolate: false,
    // Tests often wait for processes and timers, so three workers keep two cores busy.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Long enough for a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 8_000 } },
    allowOnly: false,
    passWithNoTests: false,
    reporters: 'default',
  },
})
