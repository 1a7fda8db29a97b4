// Mutants of content codings: they change the headers of responses on their way out.
import type { OutgoingHttpHeader, ServerResponse } from 'node:http'
import type { Server } from '../../src/http/server.js'

/** Gives all codings of a body one ETag. */
export function withOneEtag(server: Server): void {
  changeHeaders(server, (name, value) => (name === 'etag' ? value.replace(/\.(?:br|gzip)"$/, '"') : value))
}

/** Does not tell caches that the body depends on Accept-Encoding. */
export function withoutVary(server: Server): void {
  changeHeaders(server, (name, value) => (name === 'vary' ? value.replace(', Accept-Encoding', '') : value))
}

function changeHeaders({ fastify }: Server, change: (name: string, value: string) => string): void {
  fastify.server.prependListener('request', (_, response: ServerResponse) => {
    const writeHead = response.writeHead.bind(response)
    response.writeHead = (status: number, headers: unknown) =>
      writeHead(status, changeList(headers as OutgoingHttpHeader[], change))
  })
}

/** Names and values alternate. */
function changeList(
  list: readonly OutgoingHttpHeader[],
  change: (name: string, value: string) => string,
): OutgoingHttpHeader[] {
  return list.map((value, index) =>
    index % 2 === 0 ? value : change(String(list[index - 1]), String(value)),
  )
}
