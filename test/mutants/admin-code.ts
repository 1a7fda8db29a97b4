// The web application with one mistake. Its pages are served in the place of the built ones, to one browser context.
import path from 'node:path'
import type { BrowserContext } from 'playwright-core'
import { build } from 'vite'

/** A mistake: a text of one file in admin, and what stands there instead. */
export interface AdminMistake {
  readonly file: string
  readonly text: string
  readonly replacement: string
}

const ADMIN = path.join(import.meta.dirname, '../../admin')

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
}

/** Builds the application with the mistake. Fails if the file no longer has the text. */
async function buildMutant({
  file,
  text,
  replacement,
}: AdminMistake): Promise<ReadonlyMap<string, string | Uint8Array>> {
  const made: string[] = []
  const { NODE_ENV } = process.env
  // Otherwise Vite compiles for development, and bundles React for production.
  process.env['NODE_ENV'] = 'production'
  const result = await build({
    configFile: path.join(ADMIN, 'vite.config.ts'),
    logLevel: 'error',
    build: { write: false, minify: false, reportCompressedSize: false },
    plugins: [
      {
        name: 'mistake',
        enforce: 'pre',
        transform(code, id) {
          if (id !== path.join(ADMIN, file)) return null
          if (code.includes(text)) made.push(id)
          return code.replace(text, () => replacement)
        },
      },
    ],
  })
  process.env['NODE_ENV'] = NODE_ENV
  if (made.length === 0) throw new Error(`${file} does not contain ${text}`)
  const outputs = [result].flat().flatMap((each) => ('output' in each ? each.output : []))
  return new Map(outputs.map((each) => [each.fileName, each.type === 'chunk' ? each.code : each.source]))
}

/** Makes a browser context load the application with the mistake. */
export async function serveMutant(
  context: BrowserContext,
  url: string,
  mistake: AdminMistake,
): Promise<void> {
  const files = await buildMutant(mistake)
  await context.route(
    (address) =>
      address.origin === url && (address.pathname === '/' || address.pathname.startsWith('/assets/')),
    async (route) => {
      const { pathname } = new URL(route.request().url())
      const name = pathname === '/' ? 'index.html' : pathname.slice(1)
      const content = files.get(name)
      if (content === undefined) return route.abort()
      return route.fulfill({
        contentType: TYPES[path.extname(name)] ?? 'text/plain',
        body: Buffer.from(content),
      })
    },
  )
}
