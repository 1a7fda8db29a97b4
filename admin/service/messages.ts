// Short messages at the bottom of the page, after something was done.
import { RequestError } from 'verso-records/client'
import { Observable } from './observable.js'

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
/** How long a person can undo from a message. The history offers it for ever. */
export const UNDO_MS = 30_000

export const messages = new Observable<readonly Message[]>([])
let lastKey = 0

export function showMessage(
  message: Omit<Message, 'key' | 'durationMs'> & { readonly durationMs?: number | undefined },
): void {
  const durationMs = message.durationMs ?? (message.severity === 'error' ? undefined : DURATION_MS)
  const { value } = messages
  // The same words again say nothing new.
  const others = value.filter(
    ({ text, group }) => text !== message.text && (group === undefined || group !== message.group),
  )
  messages.set([...others, { ...message, durationMs, key: ++lastKey }].slice(-3))
}

export function closeMessage(key: number): void {
  messages.set(messages.value.filter((message) => message.key !== key))
}

export function closeAllMessages(): void {
  messages.set([])
}

/** Says why a call failed, in the words of the service. The end of a session has a dialog of its own. */
export function showFailure(error: unknown): void {
  const cause = error instanceof Error && error.cause instanceof RequestError ? error.cause : error
  if (cause instanceof RequestError && cause.status === 401) return
  showMessage({ text: cause instanceof Error ? cause.message : String(cause), severity: 'error' })
}
