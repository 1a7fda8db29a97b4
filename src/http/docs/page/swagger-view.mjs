// Shows an OpenAPI document with Swagger UI, adds snippets to each operation, and explains conflicts.
import { readConflict } from './conflict.mjs'
import { createElement } from './elements.mjs'
import { fillExamples } from './request-values.mjs'
import { resolveSubtree } from './resolve-references.mjs'
import { refreshForms } from './sample-store.mjs'
import { baseUrl, buildCredentials, serverPath } from './session.mjs'
import { buildSnippets } from './snippets.mjs'

/**
 * @typedef {import('./request-values.mjs').ApiDocument} ApiDocument
 * @typedef {Awaited<ReturnType<typeof import('./sample-store.mjs').createSampleStore>>} SampleStore
 * @typedef {{ createElement: (type: unknown, properties?: object | null, ...children: unknown[]) => unknown, useState: <T>(first: T) => [T, (next: T) => void], useSyncExternalStore: <T>(subscribe: (listener: () => void) => () => void, get: () => T) => T }} React
 * @typedef {{ React: React, specActions: { updateJsonSpec: (spec: object) => void } }} System
 * @typedef {(properties: Record<string, any>) => unknown} Component
 * @typedef {{ ok: boolean, body?: { status?: number } }} ExecutedResponse
 * @typedef {{ method?: string, headers: Record<string, string>, responseInterceptor?: (response: ExecutedResponse) => Promise<ExecutedResponse> }} ExecutedRequest
 */

/** @type {Promise<(options: object) => import('./sample-store.mjs').SwaggerUi> | undefined} */
let loading

/** Loads Swagger UI once. Its script is large, so the page starts before it arrives. */
export function loadSwaggerUi() {
  loading ??= new Promise((resolve, reject) => {
    const script = createElement('script', { src: new URL('swagger-ui-bundle.js', import.meta.url).href })
    script.addEventListener('load', () => resolve(/** @type {any} */ (globalThis).SwaggerUIBundle))
    script.addEventListener('error', () => {
      loading = undefined
      reject(new Error('A file of this page cannot be loaded. Reload the page.'))
    })
    document.head.append(script)
  })
  return loading
}

/**
 * @param {HTMLElement} place
 * @param {ApiDocument} document
 * @param {SampleStore} samples
 */
export async function showReference(place, document, samples) {
  const createUi = await loadSwaggerUi()
  // Requests go to the origin of this page, whatever name the document has for the service.
  const buildSpec = () => ({ ...fillExamples(document, samples.get()), servers: [{ url: serverPath }] })
  const spec = buildSpec()
  const domNode = createElement('div')
  place.replaceChildren(domNode)
  const ui = createUi({
    spec,
    domNode,
    layout: 'BaseLayout',
    validatorUrl: null,
    deepLinking: false,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    defaultModelExpandDepth: 2,
    tryItOutEnabled: true,
    plugins: [createSpeedPlugin(spec), createPlugin(document, samples)],
    requestInterceptor: (/** @type {ExecutedRequest} */ request) => {
      Object.assign(request.headers, buildCredentials())
      if (request.method !== 'GET') request.responseInterceptor = followWrite
      return request
    },
  })
  /**
   * The forms have the new version before the page shows the response, so that a second "Execute" is no conflict.
   * @param {ExecutedResponse} response
   */
  async function followWrite(response) {
    // With --compat axelor a conflict has the HTTP status 200.
    if (!response.ok || (response.body?.status ?? 0) < 0) return response
    const before = await samples.refresh()
    refreshForms(ui, document, { before, after: samples.get() })
    ui.specActions.updateJsonSpec(buildSpec())
    return response
  }
}

/**
 * The document is an object already and refers only to itself, so that two slow steps are short here: parsing its text as YAML, and resolving
 * references.
 * @param {ApiDocument} spec
 */
function createSpeedPlugin(spec) {
  return () => ({
    fn: {
      resolveSubtree: async (/** @type {ApiDocument} */ document, /** @type {string[]} */ path) => ({
        errors: [],
        spec: resolveSubtree(document, path),
      }),
    },
    statePlugins: {
      spec: {
        wrapActions: {
          parseToJson:
            (/** @type {unknown} */ _, /** @type {System} */ { specActions }) =>
            () => {
              specActions.updateJsonSpec(spec)
            },
        },
      },
    },
  })
}

/** The parts of Swagger UI that repeat what this page shows elsewhere. */
const HIDDEN = ['InfoContainer', 'ServersContainer', 'authorizeBtn', 'authorizeOperationBtn', 'curl']

/**
 * @param {ApiDocument} document
 * @param {SampleStore} samples
 */
function createPlugin(document, samples) {
  const hide = () => () => null
  return () => ({
    wrapComponents: {
      ...Object.fromEntries(HIDDEN.map((name) => [name, hide])),
      responses: (/** @type {Component} */ Original, /** @type {System} */ { React }) => {
        const Snippets = createSnippets(React, document, samples)
        return (/** @type {Record<string, any>} */ properties) => {
          const { path, method } = properties
          return React.createElement(
            'div',
            null,
            React.createElement(Snippets, { path, method }),
            React.createElement(Original, properties),
          )
        }
      },
      liveResponse: (/** @type {Component} */ Original, /** @type {System} */ { React }) => {
        return (/** @type {Record<string, any>} */ properties) => {
          const conflict = readConflict(String(properties['response']?.get('text') ?? ''))
          return React.createElement(
            'div',
            null,
            conflict && describeConflict(React, conflict),
            React.createElement(Original, properties),
          )
        }
      },
    },
  })
}

/**
 * @param {React} React
 * @param {ApiDocument} document
 * @param {SampleStore} samples
 */
function createSnippets(React, document, samples) {
  return (/** @type {{ path: string, method: string }} */ { path, method }) => {
    const sample = React.useSyncExternalStore(samples.subscribe, samples.get)
    const [chosen, choose] = React.useState(0)
    const [copied, setCopied] = React.useState(false)
    const snippets = buildSnippets({ document, path, method, baseUrl, sample })
    if (snippets.length === 0) return null
    const text = snippets[chosen]?.text ?? ''
    const tabs = snippets.map(({ label }, index) =>
      React.createElement(
        'button',
        {
          key: label,
          type: 'button',
          'aria-pressed': index === chosen,
          onClick: () => {
            choose(index)
            setCopied(false)
          },
        },
        label,
      ),
    )
    const copy = () => {
      // Browsers offer the clipboard to pages over https and of localhost only.
      void navigator.clipboard?.writeText(text).then(() => setCopied(true))
    }
    return React.createElement(
      'section',
      { className: 'snippets', 'aria-label': 'Snippets' },
      React.createElement(
        'div',
        { className: 'tabs' },
        ...tabs,
        React.createElement('button', { type: 'button', onClick: copy }, copied ? 'Copied' : 'Copy'),
      ),
      React.createElement('pre', { tabIndex: 0 }, text),
    )
  }
}

/**
 * @param {React} React
 * @param {import('./conflict.mjs').ConflictReport} report
 */
function describeConflict(React, { message, rows }) {
  const heads = ['Field', 'Before', 'Yours', 'Theirs', 'Verdict'].map((text) =>
    React.createElement('th', { key: text, scope: 'col' }, text),
  )
  const lines = rows.map(({ field, base, ours, theirs, verdict }) =>
    React.createElement(
      'tr',
      { key: field, className: verdict === 'clash' ? 'clash' : '' },
      React.createElement('th', { scope: 'row' }, field),
      ...[base, ours, theirs, verdict].map((text, index) => React.createElement('td', { key: index }, text)),
    ),
  )
  return React.createElement(
    'section',
    { className: 'conflict', role: 'alert' },
    React.createElement('h4', null, 'Conflict'),
    React.createElement('p', null, message),
    rows.length > 0 &&
      React.createElement(
        'table',
        null,
        React.createElement('thead', null, React.createElement('tr', null, ...heads)),
        React.createElement('tbody', null, ...lines),
      ),
  )
}
