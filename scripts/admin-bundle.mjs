// Bundles the web application of admin/ into a folder: `node scripts/admin-bundle.mjs <folder>`. admin.mjs decides whether that is needed.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { build } from 'vite'

const configFile = fileURLToPath(new URL('../admin/vite.config.ts', import.meta.url))
/** The types of files that the service serves. */
const SERVED = ['.css', '.js', '.svg']

/** Everybody who receives the files receives the licences of the packages in them. The service does not serve that file. */
const LICENCES = 'licences.txt'

async function bundle(folder) {
  await build({
    configFile,
    mode: 'production',
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true, sourcemap: false, license: { fileName: LICENCES } },
  })
  const assets = path.join(folder, 'assets')
  for (const name of readdirSync(assets)) compress(path.join(assets, name))
}

function compress(file) {
  if (!SERVED.includes(path.extname(file)))
    throw new Error(`The service serves no file such as ${path.basename(file)}, only ${SERVED.join(', ')}`)
  const content = readFileSync(file)
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
  }
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params }))
  rmSync(file)
}

await bundle(path.resolve(process.argv[2]))
