// What ships beside the code. The same number of steps away from src/cli and from dist/cli.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export function packageFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url))
}

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }
  return version
}
