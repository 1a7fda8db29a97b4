// The web application in admin/: its page at the base path, and its files. They hold nothing of the database, so both are public.
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { VersoError } from '../../errors.js'
import { readAssets, readAtFirstCall, sendAsset, type Asset } from '../assets/assets.js'
import { PAGE_FILES } from '../assets/page-files.js'
import { acceptsHtml, escapeHtml, setPageHeaders } from '../assets/page.js'
import { addVary, replaceHeader, sendBody, sendCacheable } from '../response/send.js'
import type { OperationDocs } from '../route/documentation.js'
import { documented, type Resource, type RouteContext, type RouteHandler } from '../route/resource.js'

/** Scripts and styles come from files only, requests go to this service only. Downloaded images are `blob:` URLs. */
export const ADMIN_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** src/http/admin and dist/http/admin have the same depth, so this path leads to the build from both. */
const ADMIN_FOLDER = fileURLToPath(new URL('../../../dist/admin/', import.meta.url))
const NOT_BUILT = 'The web application is not built: run npm run build in the checkout of the service'
const ETAG_CHARACTERS = 22

/** For clients other than browsers. */
const ROOT_TEXT =
  'Verso is running. Log in with POST callback; records are at ws/rest/<model>, and the API reference is at docs.\n'

const ROOT_DOCS: OperationDocs = {
  id: 'showRoot',
  group: 'Service',
  access: 'public',
  summary: 'Show that the service is running, or the web application to a browser',
  headers: ['If-None-Match'],
  answers: {
    200: {
      description: 'A line of text. A request that accepts `text/html` gets the page of the web application.',
      content: { 'text/plain': { type: 'string' }, 'text/html': { type: 'string' } },
      headers: ['ETag'],
    },
    304: { description: 'The page has not changed since the answer with this ETag.', headers: ['ETag'] },
  },
  errors: [],
}

const FILE_DOCS: OperationDocs = {
  id: 'readApplicationFile',
  group: 'Service',
  access: 'public',
  summary: 'Read a script, a style sheet or an image of the web application',
  answers: {
    200: {
      description: 'The file. Its path changes with its content.',
      content: {
        'text/javascript': { type: 'string' },
        'text/css': { type: 'string' },
        'image/svg+xml': { type: 'string' },
      },
    },
  },
  errors: ['not-found'],
}

interface Application {
  readonly page: string
  readonly etag: string
  readonly files: ReadonlyMap<string, Asset>
}

export function createAdminResources(
  { settings: { basePath } }: Pick<RouteContext, 'settings'>,
  folder = ADMIN_FOLDER,
): readonly Resource[] {
  const findApplication = readAtFirstCall(() => readApplication(folder, basePath), NOT_BUILT)
  const sendRoot: RouteHandler = async (request, reply) => {
    addVary(reply, 'Accept')
    const application = acceptsHtml(request) ? await findApplication().catch(ignoreNotFound) : undefined
    if (!application) return sendBody(reply, 'text/plain; charset=utf-8', ROOT_TEXT)
    setPageHeaders(reply, ADMIN_CSP)
    replaceHeader(reply, 'cache-control', 'no-cache')
    return sendCacheable(reply, 'text/html; charset=utf-8', application.page, application.etag)
  }
  const sendFile: RouteHandler = async (request, reply) => {
    const { file } = request.params as { readonly file: string }
    const asset = PAGE_FILES.get(file) ?? (await findApplication()).files.get(file)
    if (!asset)
      throw new VersoError('not-found', `The web application has no such file: open ${basePath}/ instead`)
    return sendAsset(reply, asset)
  }
  const shared = { guards: [], isPage: true }
  return [
    { ...shared, path: '/', handlers: { GET: documented(ROOT_DOCS, sendRoot) } },
    { ...shared, path: '/assets/:file', handlers: { GET: documented(FILE_DOCS, sendFile) } },
  ]
}

/** A browser at `/x` resolves relative paths against `/`, so the page gets the base path. */
async function readApplication(folder: string, basePath: string): Promise<Application> {
  const prefix = escapeHtml(basePath)
  const built = await readFile(path.join(folder, 'index.html'), 'utf8')
  const page = built
    .replaceAll('"./assets/', () => `"${prefix}/assets/`)
    .replace('data-base-path=""', () => `data-base-path="${prefix}"`)
  const { files } = await readAssets([path.join(folder, 'assets')])
  return { page, etag: `"${hash('sha256', page, 'base64url').slice(0, ETAG_CHARACTERS)}"`, files }
}

function ignoreNotFound(error: unknown): undefined {
  if (error instanceof VersoError && error.kind === 'not-found') return undefined
  throw error
}
