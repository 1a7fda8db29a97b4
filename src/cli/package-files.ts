// What ships beside the code. The same number of steps away from src/cli and from dist/cli.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export function resolvePackageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}

export function readPackageVersion(): string {
  const { version } = JSON.parse(readFileSync(resolvePackageFile('package.json'), 'utf8')) as {
    version: string
  }
  return version
}
