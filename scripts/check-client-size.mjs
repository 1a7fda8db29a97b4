// Bundles the client as a web page would get it, and checks its size and that it needs nothing else.
import { realpathSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

const MAX_GZIP_BYTES = 12_000
const ENTRY = path.join(import.meta.dirname, '../src/client/index.ts')

/** True for a package or a builtin of Node: a page has neither. */
function isPackage(name) {
  return isBuiltin(name) || (/^[\w@]/.test(name) && !path.isAbsolute(name))
}

/** Returns the minified bundle of an entry, and the modules that it still imports. */
export async function bundleClient(entry = ENTRY) {
  const { output } = await build({
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      minify: true,
      target: 'es2022',
      // The library mode of Vite would leave white space in the bundle.
      rollupOptions: { input: entry, external: isPackage, preserveEntrySignatures: 'strict' },
    },
  })
  return {
    code: output.map((chunk) => chunk.code ?? '').join(''),
    imports: output.flatMap((chunk) => chunk.imports ?? []),
    modules: output.flatMap((chunk) => chunk.moduleIds ?? []).filter((id) => !id.startsWith('\0')),
    gzipBytes: gzipSync(output.map((chunk) => chunk.code ?? '').join(''), { level: 9 }).length,
  }
}

/** Returns one line for each rule that a bundle breaks. */
export function findBundleFaults({ imports, modules, gzipBytes }) {
  const foreign = modules.filter((id) => path.relative(path.dirname(ENTRY), id).startsWith('..'))
  return [
    ...imports.map((name) => `The client imports ${name}, which a page does not have`),
    ...foreign.map((id) => `The client contains ${id}, which is not in src/client`),
    ...(gzipBytes > MAX_GZIP_BYTES
      ? [`The client has ${gzipBytes} bytes (gzip), at most ${MAX_GZIP_BYTES}`]
      : []),
  ]
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  const bundle = await bundleClient()
  const faults = findBundleFaults(bundle)
  console.log(`client: ${bundle.gzipBytes} bytes (gzip), at most ${MAX_GZIP_BYTES}`)
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length > 0 ? 1 : 0
}
