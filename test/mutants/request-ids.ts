// Services with one mistake in how they take over the ids of a request.
import { importFromMutant, type Mistake } from './program.js'

const REQUEST_ID_MISTAKES = {
  'ids of clients are ignored': {
    file: 'http/fastify.js',
    from: 'readRequestId(request) ?? ',
    to: '',
  },
  'ids of clients are not checked': {
    file: 'http/request/headers.js',
    from: 'REQUEST_ID_PATTERN.test(id)',
    to: 'id !== ""',
  },
  'version 00 of a traceparent may have more parts': {
    file: 'http/request/headers.js',
    from: '(?!ff|00-.{52}.)',
    to: '(?!ff)',
  },
} as const satisfies Record<string, Mistake>

export type RequestIdMistake = keyof typeof REQUEST_ID_MISTAKES

/** Imports the mutant that creates servers. `parent` is a folder for its copy of the program. */
export async function importMutantServer(
  parent: string,
  mistake: RequestIdMistake,
): Promise<typeof import('../../src/http/server.js')> {
  const module = await importFromMutant(parent, REQUEST_ID_MISTAKES[mistake], 'http/server.js')
  return module as typeof import('../../src/http/server.js')
}
