// HTML pages for people: forms behind one-time links, and errors about them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { replaceHeader, sendBody, type SentReply } from '../response/send.js'
import { LOGO_NAME, STYLE_NAME } from './page-files.js'

const PAGE_CSP =
  "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

export interface HtmlPage {
  readonly title: string
  readonly bodyHtml: string
  readonly basePath: string
}

/** Sends a page that needs no script. */
export function sendHtmlPage(
  reply: FastifyReply,
  { title, bodyHtml, basePath }: HtmlPage,
  isError = false,
): SentReply {
  setPageHeaders(reply, PAGE_CSP)
  const files = escapeHtml(`${basePath}/assets`)
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Verso</title>
<link rel="icon" type="image/svg+xml" href="${files}/${LOGO_NAME}">
<link rel="stylesheet" href="${files}/${STYLE_NAME}">
</head>
<body>
<p class="brand"><img src="${files}/${LOGO_NAME}" alt="" width="32" height="32">Verso</p>
<main>
<h1>${escapeHtml(title)}</h1>
${bodyHtml}
</main>
</body>
</html>
`
  return sendBody(reply, 'text/html; charset=utf-8', html, isError)
}

/**
 * Sets the headers of a page. Its URL may contain a token, which the referrer policy hides from other pages. `no-referrer` would also hide
 * the origin of a form, which guards need.
 */
export function setPageHeaders(reply: FastifyReply, policy: string): void {
  replaceHeader(reply, 'content-security-policy', policy)
  replaceHeader(reply, 'referrer-policy', 'strict-origin')
}

/** True for a browser that shows a page or submits a form. */
export function acceptsHtml({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/html') ?? false
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}
