// Starts the longest files of tests first, so that none of them runs alone at the end. Vitest starts the largest files first.
import path from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Longest first. */
const LONGEST = [
  'package/package.all',
  'faults/scheduled-backups.all',
  'cli/prove.all',
  'deploy/proxies.all',
  'docs/pages.all',
  'docs/guides.all',
  'permissions/bisection.all',
  'docs/bench.all',
  'cli/dev.all',
  'clients/verso/edits.all',
  'wire/storms.all',
  'cli/accounts.all',
  'faults/files.all',
  'faults/webhooks.all',
  'docs/deploy.all',
  'permissions/matrix.all',
  'cli/servers.all',
  'faults/import-kill.all',
  'faults/feed.all',
  'cli/transfer.all',
  'wire/bad-input',
  'wire/storms',
  'properties/search',
  'properties/one-writer',
  'permissions/matrix',
  'wire/limits',
  'permissions/bisection',
  'faults/race',
].map((name) => path.join(import.meta.dirname, `${name}.test.ts`))

function placeOf({ moduleId }: TestSpecification): number {
  return LONGEST.includes(moduleId) ? LONGEST.indexOf(moduleId) : LONGEST.length
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b))
  }
}
