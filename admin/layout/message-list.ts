// Short messages at the bottom of the page, after something was done.
import { RequestError, UnauthenticatedError } from 'verso-records/client'
import { Observable } from '../service/observable.js'
import { getTexts } from '../texts/texts.js'

export interface Message {
  readonly key: number
  readonly text: string
  readonly severity: 'success' | 'info' | 'warning' | 'error'
  /** Offered as a button beside the text. */
  readonly action?: { readonly label: string; readonly run: () => void } | undefined
  /** A later message of the same group replaces this one: only the last save of a record can be undone. */
  readonly group?: string | undefined
  /** Disappears after this time; undefined stays until it is closed. */
  readonly durationMs: number | undefined
}

const DURATION_MS = 6_000
/** Older messages without an offer make room. */
const MAX_PLAIN = 2
/** How long a person can undo from a message. The history offers it for ever. */
export const UNDO_MS = 30_000

export const messages = new Observable<readonly Message[]>([])
let lastKey = 0

export function showMessage(
  message: Omit<Message, 'key' | 'durationMs'> & { readonly durationMs?: number | undefined },
): void {
  const durationMs = message.durationMs ?? (message.severity === 'error' ? undefined : DURATION_MS)
  const { value } = messages
  // The same words again say nothing new. An offer stays until its time is over.
  const others = value.filter(
    ({ text, group, action }) =>
      (text !== message.text || action !== undefined) && (group === undefined || group !== message.group),
  )
  const plain = others.filter(({ action }) => action === undefined)
  const kept = others.filter(
    (each) => each.action !== undefined || plain.indexOf(each) >= plain.length - MAX_PLAIN,
  )
  messages.set([...kept, { ...message, durationMs, key: ++lastKey }])
}

export function closeMessage(key: number): void {
  messages.set(messages.value.filter((message) => message.key !== key))
}

export function closeAllMessages(): void {
  messages.set([])
}

/** Says why a call failed. The end of a session has a dialog of its own. */
export function showFailure(error: unknown): void {
  if (findCause(error) instanceof UnauthenticatedError) return
  showMessage({ text: explainFailure(error), severity: 'error' })
}

/** The reason of a failure in words: those of the service, unless it could not be reached. */
export function explainFailure(error: unknown): string {
  const cause = findCause(error)
  const isUnreachable = cause instanceof RequestError && (cause.status === 0 || cause.kind === 'network')
  if (isUnreachable) return getTexts().common.offline
  return cause instanceof Error ? cause.message : String(cause)
}

/** Errors of the data provider wrap those of the client. */
function findCause(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof RequestError ? error.cause : error
}
