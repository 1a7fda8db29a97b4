// Builds dist after `npm ci` in a checkout. Without the development packages there is no compiler and no bundler, and
// dist exists already.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildAdmin } from './admin.mjs'
import { copyApiReference } from './api-reference.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const bundler = fileURLToPath(new URL('../node_modules/vite', import.meta.url))
const compiler = fileURLToPath(new URL('../node_modules/@typescript/native/bin/tsc', import.meta.url))

if (existsSync(compiler)) {
  execFileSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
  copyApiReference(path.join(root, 'dist'))
  if (existsSync(bundler)) buildAdmin(path.join(root, 'dist'))
}
