// Copies of the built client with one mistake each.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { inject } from 'vitest'
import { createMutantProgram, type Mistake } from './program.js'

type Client = typeof import('verso-records/client')

/** Takes any JSON for an answer of the service. */
export const ACCEPTING_ANY_ANSWER: Mistake = {
  file: 'client/answer.js',
  from: `&& 'data' in body)`,
  to: `&& 'data' in body || true)`,
}

/** Sends each save of an update with another key. */
export const NEW_KEY_FOR_EACH_SAVE: Mistake = {
  file: 'client/model-verbs.js',
  from: 'save: ({ source, version, changes }) =>',
  to: 'save: ({ source, version, changes }, key = createIdempotencyKey()) =>',
}

/** Answers a conflict although others may have changed a field that the user cannot read. */
export const OVERWRITING_UNSEEN: Mistake = {
  file: 'client/update.js',
  from: 'some(isUnseen)',
  to: 'every(isUnseen)',
}

/** Connects a stream again without waiting as long as the service asks for. */
export const HURRYING: Mistake = {
  file: 'client/follow.js',
  from: 'failures + 1, failure)',
  to: 'failures + 1, {})',
}

/** Sends rejected credentials again with each call. */
export const REPEATING_CREDENTIALS: Mistake = {
  file: 'client/session.js',
  from: 'if (isRejection(error))',
  to: 'if (false)',
}

/** Reads on by offset where the service sends no cursor. */
export const READING_BY_OFFSET: Mistake = {
  file: 'client/model-verbs.js',
  from: 'if (next.after === undefined &&',
  to: 'if (false &&',
}

export async function importMutantClient(mistake: Mistake): Promise<Client> {
  const dist = createMutantProgram(inject('runFolder'), mistake)
  return (await import(/* @vite-ignore */ pathToFileURL(path.join(dist, 'client/index.js')).href)) as Client
}
