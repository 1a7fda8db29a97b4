// Files that ship with the package. src/cli and dist/cli have the same depth, so one relative path fits both.
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
