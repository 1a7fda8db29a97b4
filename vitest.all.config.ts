import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitest/config'
import base from './vitest.config.js'

const TESTS = path.join(import.meta.dirname, 'test')

/** Files that load services in other processes. They would disturb the others, so they run after them. */
const UNDER_LOAD = [
  'test/faults/backup-kills.all.test.ts',
  'test/cli/prove-thousands.all.test.ts',
  'test/faults/counters.all.test.ts',
  'test/faults/file-kills.all.test.ts',
  'test/faults/kill-ten-times.all.test.ts',
  'test/faults/race-processes.all.test.ts',
]

/** Files that measure time, or that fill a service up to its limits. They run one after the other, after all the others. */
const ALONE = [
  'test/admin/large-menu.all.test.ts',
  'test/docs-page/large-domain.all.test.ts',
  'test/faults/merge-race-nodes.all.test.ts',
  'test/faults/worst-criteria.all.test.ts',
  'test/hooks/stuck-hook.all.test.ts',
  'test/types/large-domain.all.test.ts',
  'test/wire/timing-400.all.test.ts',
  'test/wire/timing.all.test.ts',
]

/** Files that run on another engine here than in `npm test`. */
const OTHER_ENGINE = readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => path.join(TESTS, file))
  .filter((file) => readFileSync(file, 'utf8').includes('onEngineOfTier('))

// The root runs the global set-up once for all projects.
const settings = { ...base.test, globalSetup: [], testTimeout: 600_000, hookTimeout: 600_000 }

/** The tests that `npm test` leaves out, and those that it runs on other engines or transports. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: [
      {
        ...base,
        test: {
          ...settings,
          name: 'all',
          include: [
            'test/**/*.all.test.ts',
            'test/behaviour/*.test.ts',
            'test/faults/shared-files.test.ts',
            ...OTHER_ENGINE,
          ],
          exclude: [...UNDER_LOAD, ...ALONE],
          provide: { targets: 'other' },
        },
      },
      {
        ...base,
        test: {
          ...settings,
          name: 'under-load',
          include: UNDER_LOAD,
          exclude: [],
          sequence: { groupOrder: 1 },
        },
      },
      {
        ...base,
        test: {
          ...settings,
          name: 'alone',
          include: ALONE,
          exclude: [],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
