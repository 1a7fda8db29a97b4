// The API reference, a page for people and browsers. It asks the service for the documents of its user.
import { fileURLToPath } from 'node:url'
import { VersoError } from '../../errors.js'
import { readAssets, readAtFirstCall, sendAsset } from '../assets/assets.js'
import { escapeHtml, setPageHeaders } from '../assets/page.js'
import { replaceHeader, sendBody } from '../response/send.js'
import type { OperationDocs } from '../route/documentation.js'
import { documented, type Resource, type RouteContext, type RouteHandler } from '../route/resource.js'

/** Scripts and styles come from files only, requests go to this service only. Swagger UI has its icons in `data:` URLs. */
const DOCS_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** The page's own files, and Swagger UI, which the build copies from its package and compresses. */
const FOLDERS = [
  fileURLToPath(new URL('./page/', import.meta.url)),
  // src/http/docs and dist/http/docs have the same depth, so this path leads to the build from both.
  fileURLToPath(new URL('../../../dist/http/docs/swagger-ui/', import.meta.url)),
]
const NOT_BUILT = 'The API reference is not built: run npm run build in the checkout of the service'

const PAGE_DOCS: OperationDocs = {
  id: 'showApiReference',
  group: 'Models',
  access: 'public',
  summary: 'Show the API reference, a page for browsers',
  answers: { 200: { description: 'The page.', content: { 'text/html': { type: 'string' } } } },
  errors: ['not-found'],
}

const FILE_DOCS: OperationDocs = {
  id: 'readApiReferenceFile',
  group: 'Models',
  access: 'public',
  summary: 'Read a script or a style sheet of the API reference',
  answers: {
    200: {
      description: 'The file. Its path changes with its content.',
      content: {
        'text/javascript': { type: 'string' },
        'text/css': { type: 'string' },
        'text/plain': { type: 'string' },
      },
    },
  },
  errors: ['not-found'],
}

interface FileParams {
  readonly version: string
  readonly file: string
}

/** Both resources are public: they hold nothing of the database. */
export function createDocsResources({ settings: { basePath } }: RouteContext): readonly Resource[] {
  const findAssets = readAtFirstCall(() => readAssets(FOLDERS), NOT_BUILT)
  const sendIndex: RouteHandler = async (_, reply) => {
    const { version } = await findAssets()
    setPageHeaders(reply, DOCS_CSP)
    replaceHeader(reply, 'cache-control', 'no-cache')
    return sendBody(reply, 'text/html; charset=utf-8', buildIndex(basePath, version))
  }
  const sendFile: RouteHandler = async (request, reply) => {
    const { version, file } = request.params as FileParams
    const assets = await findAssets()
    const asset = version === assets.version ? assets.files.get(file) : undefined
    if (!asset)
      throw new VersoError('not-found', `The API reference has no such file: open ${basePath}/docs instead`)
    return sendAsset(reply, asset)
  }
  const shared = { guards: [], isPage: true }
  return [
    { ...shared, path: '/docs', handlers: { GET: documented(PAGE_DOCS, sendIndex) } },
    { ...shared, path: '/docs/:version/:file', handlers: { GET: documented(FILE_DOCS, sendFile) } },
  ]
}

function buildIndex(basePath: string, version: string): string {
  const files = escapeHtml(`${basePath}/docs/${version}`)
  return `<!doctype html>
<html lang="en" data-base-path="${escapeHtml(basePath)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Verso</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${files}/swagger-ui.css">
<link rel="stylesheet" href="${files}/page.css">
<script type="module" src="${files}/page.mjs"></script>
</head>
<body>
<noscript><p>The API reference needs JavaScript. The document itself is at ${escapeHtml(basePath)}/ws/openapi.json.</p></noscript>
</body>
</html>
`
}
