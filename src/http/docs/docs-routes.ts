// The API reference, a page for people and browsers. It asks the service for the documents of its user.
import { VersoError } from '../../errors.js'
import { chooseCoding } from '../response/content-coding.js'
import { escapeHtml } from '../response/page.js'
import { replaceHeader, sendBody, setHeader, type SentReply } from '../response/send.js'
import type { OperationDocs } from '../route/documentation.js'
import { documented, type Resource, type RouteContext, type RouteHandler } from '../route/resource.js'
import { readAssets, type AssetSet } from './assets.js'

/** Scripts and styles come from files only, requests go to this service only. Swagger UI has its icons in `data:` URLs. */
const DOCS_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** The name of a file changes with its content. */
const CACHE_FOR_EVER = 'public, max-age=31536000, immutable'

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
  let reading: Promise<AssetSet> | undefined
  const findAssets = async (): Promise<AssetSet> => {
    reading ??= readAssets()
    try {
      return await reading
    } catch (error) {
      reading = undefined
      throw error
    }
  }
  const sendIndex: RouteHandler = async (_, reply) => {
    const { version } = await findAssets()
    replaceHeader(reply, 'content-security-policy', DOCS_CSP)
    replaceHeader(reply, 'cache-control', 'no-cache')
    // `no-referrer` would also hide the origin of the login form, which guards need.
    replaceHeader(reply, 'referrer-policy', 'strict-origin')
    return sendBody(reply, 'text/html; charset=utf-8', buildIndex(basePath, version))
  }
  const sendFile: RouteHandler = async (request, reply): Promise<SentReply> => {
    const { version, file } = request.params as FileParams
    const assets = await findAssets()
    const asset = version === assets.version ? assets.files.get(file) : undefined
    if (!asset)
      throw new VersoError('not-found', `The API reference has no such file: open ${basePath}/docs instead`)
    const canCompress = reply.server.compressor !== null
    const accepted = chooseCoding(canCompress ? (request.headers['accept-encoding'] ?? '') : '')
    const { coding = 'identity' } = accepted
    const body = await asset.encode(coding)
    replaceHeader(reply, 'cache-control', CACHE_FOR_EVER)
    replaceHeader(reply, 'vary', 'Accept-Encoding')
    if (coding !== 'identity') setHeader(reply, 'content-encoding', coding)
    return sendBody(reply, asset.type, body)
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
