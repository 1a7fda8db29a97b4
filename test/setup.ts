// Before any test: dist is what src says, and one PostgreSQL runs for all of them.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { startPostgres } from './postgres.js'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = fileURLToPath(new URL('../node_modules/@typescript/native/bin/tsc', import.meta.url))

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  build()
  const server = await startPostgres()
  project.provide('postgresUrl', server.url)
  return () => server.stop()
}

function build(): void {
  const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('src does not compile, so there is nothing to test: see the errors above')
}
