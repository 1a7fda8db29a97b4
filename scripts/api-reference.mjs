// Copies the files of the API reference into a build: those of the page, and Swagger UI from its package, compressed. The package is a
// development dependency, because the service needs only these files of it. See docs/decisions/api-reference.md.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'

const root = fileURLToPath(new URL('..', import.meta.url))
const PAGE = path.join(root, 'src/http/docs/page')
const SWAGGER_UI = path.join(root, 'node_modules/swagger-ui-dist')
const COMPRESSED = ['swagger-ui-bundle.js', 'swagger-ui.css']
/** Everybody who receives the files receives their licences. */
const LICENCES = ['LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt']
/** The highest qualities save 8 % and take 20 times as long. */
const QUALITY = 9

/** Writes `http/docs/page` and `http/docs/swagger-ui` into the folder of a build. */
export function copyApiReference(dist) {
  const page = path.join(dist, 'http/docs/page')
  rmSync(page, { recursive: true, force: true })
  mkdirSync(page, { recursive: true })
  for (const name of listPageFiles()) cpSync(path.join(PAGE, name), path.join(page, name))
  const folder = path.join(dist, 'http/docs/swagger-ui')
  mkdirSync(folder, { recursive: true })
  for (const name of LICENCES) cpSync(path.join(SWAGGER_UI, name), path.join(folder, name))
  for (const name of COMPRESSED) compress(path.join(SWAGGER_UI, name), path.join(folder, `${name}.br`))
}

/** The files that browsers load. Type declarations are for tests and editors. */
export function listPageFiles() {
  return readdirSync(PAGE).filter((name) => /(?<!\.d)\.(mjs|css)$/.test(name))
}

function compress(source, target) {
  if (existsSync(target) && statSync(target).mtimeMs > statSync(source).mtimeMs) return
  // The map is not shipped.
  const text = readFileSync(source, 'utf8').replace(/\n?(\/\/|\/\*)# sourceMappingURL=\S+( \*\/)?\s*$/, '\n')
  const params = { [constants.BROTLI_PARAM_QUALITY]: QUALITY, [constants.BROTLI_PARAM_LGWIN]: 24 }
  writeFileSync(target, brotliCompressSync(text, { params }))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) copyApiReference(path.join(root, 'dist'))
