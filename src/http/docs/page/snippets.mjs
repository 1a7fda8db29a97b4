// Programs that make one call, in curl, TypeScript and Python. They are made from the operation of the OpenAPI document and its example.
// A snippet takes the API key from the environment variable VERSO_KEY, if the call needs one.
import { describeCall, UPLOADED_FILE } from './call.mjs'
import { FORM_TYPE } from './request-values.mjs'
import { isJson } from './resolve-references.mjs'
import { writeTypeScript } from './typescript-snippet.mjs'

/**
 * @typedef {import('./call.mjs').Call} Call
 * @typedef {import('./request-values.mjs').RequestSource & { baseUrl: string }} SnippetSource
 */

const DOWNLOADED_FILE = 'file'
const BOUNDARY = 'verso-snippet'

/**
 * Returns the snippets by language. A call has none if it takes no API key, or if a value that it needs is not known. TypeScript is
 * missing if the client cannot read the response.
 * @param {SnippetSource} source
 * @returns {{ label: string, text: string }[]}
 */
export function buildSnippets(source) {
  const call = describeCall(source)
  if (!call) return []
  const { baseUrl } = source
  return [
    { label: 'curl', text: writeCurl(call, baseUrl) },
    { label: 'TypeScript', text: writeTypeScript(call, baseUrl) },
    { label: 'Python', text: writePython(call, baseUrl) },
  ].flatMap(({ label, text }) => (text === undefined ? [] : [{ label, text }]))
}

/**
 * @param {Call} call
 * @param {string} baseUrl
 */
function writeCurl({ method, path, query, headers, needsKey, body, upload, answer }, baseUrl) {
  const lines = [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${quoteForShell(baseUrl + path + writeQuery(query))}`,
    ...(needsKey ? ['-H "Authorization: Bearer $VERSO_KEY"'] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoteForShell(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${quoteForShell(JSON.stringify(body))}`]),
    ...(upload
      ? [
          // A semicolon in the value of -F begins an option.
          `--form-string ${quoteForShell(`request=${JSON.stringify(upload.request)}`)}`,
          `--form-string ${quoteForShell(`field=${upload.field}`)}`,
          `-F ${quoteForShell(`file=${UPLOADED_FILE.content};filename=${UPLOADED_FILE.name}`)}`,
        ]
      : []),
    // curl writes no binary content to a terminal.
    ...(answer === 'file' ? [`-o ${DOWNLOADED_FILE}`] : []),
  ]
  return lines.join(' \\\n  ')
}

/**
 * @param {Call} call
 * @param {string} baseUrl
 */
function writePython({ method, path, query, headers, needsKey, body, upload, answer }, baseUrl) {
  const sent = upload ? { ...headers, 'Content-Type': `${FORM_TYPE}; boundary=${BOUNDARY}` } : headers
  const fields = [
    ...(needsKey ? ['"Authorization": "Bearer " + os.environ["VERSO_KEY"]'] : []),
    ...Object.entries(sent).map(([name, value]) => `${quote(name)}: ${quote(value)}`),
  ]
  const data = upload ? '"\\r\\n".join(form).encode()' : `json.dumps(${toPython(body)}).encode()`
  const isSent = body !== undefined || upload !== undefined
  return [
    ...(isSent ? ['import json'] : []),
    ...(needsKey ? ['import os'] : []),
    'import urllib.error',
    'import urllib.request',
    '',
    ...(upload ? writePythonForm(upload) : []),
    'request = urllib.request.Request(',
    `    ${quote(baseUrl + path + writeQuery(query))},`,
    `    method=${quote(method)},`,
    `    headers={${fields.join(', ')}},`,
    ...(isSent ? [`    data=${data},`] : []),
    ')',
    'try:',
    '    with urllib.request.urlopen(request) as response:',
    ...(answer === 'file'
      ? [
          `        with open(${quote(DOWNLOADED_FILE)}, "wb") as file:`,
          '            file.write(response.read())',
        ]
      : ['        print(response.read().decode())']),
    'except urllib.error.HTTPError as error:',
    '    raise SystemExit(error.read().decode())',
  ].join('\n')
}

/**
 * The standard library of Python writes no forms.
 * @param {import('./call.mjs').UploadParts} upload
 */
function writePythonForm({ request, field }) {
  const disposition = (/** @type {string} */ name) => `Content-Disposition: form-data; name="${name}"`
  const lines = [
    quote(`--${BOUNDARY}`),
    quote(disposition('request')),
    '""',
    `json.dumps(${toPython(request)})`,
    quote(`--${BOUNDARY}`),
    quote(disposition('field')),
    '""',
    quote(field),
    quote(`--${BOUNDARY}`),
    quote(`${disposition('file')}; filename="${UPLOADED_FILE.name}"`),
    '""',
    quote(UPLOADED_FILE.content),
    quote(`--${BOUNDARY}--`),
    '""',
  ]
  return ['form = [', ...lines.map((line) => `    ${line},`), ']']
}

/** @param {Record<string, unknown>} query */
function writeQuery(query) {
  const entries = Object.entries(query).map(([name, value]) => [name, String(value)])
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries).toString()}`
}

/**
 * A string of JSON is also a string of Python.
 * @param {unknown} value
 */
function quote(value) {
  return JSON.stringify(value)
}

/** @param {string} text */
function quoteForShell(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function toPython(value) {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`
  if (!isJson(value)) return quote(value)
  const entries = Object.entries(value).map(([name, entry]) => `${quote(name)}: ${toPython(entry)}`)
  return `{${entries.join(', ')}}`
}
