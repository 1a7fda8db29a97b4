// HTML pages for people: forms behind one-time links, and errors about them.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { replaceHeader, sendBody, type SentReply } from './send.js'

const PAGE_CSP = `default-src 'none'; base-uri 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'`

const STYLE = `body{font:16px/1.5 system-ui;max-width:34rem;margin:10vh auto;padding:0 1rem}form{max-width:24rem}
label{display:block;margin:1rem 0}input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem}
button{font:inherit;padding:.4rem 1rem}.error{color:#b00020;margin:.2rem 0}[aria-invalid]{border:2px solid #b00020}
pre{background:#f4f4f4;padding:.6rem;white-space:pre-wrap;overflow-wrap:anywhere}`

export interface HtmlPage {
  readonly title: string
  readonly bodyHtml: string
}

/** The referrer policy hides the URL with its token from other pages. `no-referrer` would also hide the origin of the form, which guards need. */
export function sendHtmlPage(reply: FastifyReply, { title, bodyHtml }: HtmlPage, isError = false): SentReply {
  replaceHeader(reply, 'content-security-policy', PAGE_CSP)
  replaceHeader(reply, 'referrer-policy', 'strict-origin')
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)} · Verso</title>
<style>${STYLE}</style>
<h1>${escapeHtml(title)}</h1>
${bodyHtml}
</html>
`
  return sendBody(reply, 'text/html; charset=utf-8', html, isError)
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
