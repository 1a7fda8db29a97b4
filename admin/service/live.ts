// Follows the changes of all records that the person may see, and tells the pages about them.
//
// A browser opens at most six connections to a service over HTTP/1.1, for all tabs together. A stream takes one of them, so a hidden tab
// closes its stream, and continues from the last change when it is shown again.
import { GoneError, UnauthenticatedError, type Change } from 'verso-records/client'
import { checkSession, client, isOffline, session } from './session.js'

type ChangeListener = (changes: readonly Change[]) => void

/** Changes are passed on together, so that a page that reads again is not interrupted by each of them. */
const BATCH_MS = 300
const RETRY_MS = 3_000

const listeners = new Set<ChangeListener>()
/** Called after changes may have been missed: whatever was read may be outdated. */
const gapListeners = new Set<() => void>()
let running: AbortController | undefined
let last: number | undefined
let batch: Change[] = []
let timer: ReturnType<typeof setTimeout> | undefined

export function subscribeToChanges(listener: ChangeListener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function subscribeToGaps(listener: () => void): () => void {
  gapListeners.add(listener)
  return () => gapListeners.delete(listener)
}

function pass(change: Change): void {
  last = change.seq
  batch.push(change)
  timer ??= setTimeout(() => {
    const changes = batch
    batch = []
    timer = undefined
    for (const listener of listeners) listener(changes)
  }, BATCH_MS)
}

/** The number of the newest change, as the list of some model tells it. */
async function findNewestChange(): Promise<number | undefined> {
  const { body } = await client.request('GET', '/ws/meta/models')
  for (const model of (body as { data: readonly string[] }).data) {
    const page = await client
      .model(model)
      .find({ limit: 0 })
      .catch(() => undefined)
    if (page) return page.seq
  }
  return undefined
}

async function follow(signal: AbortSignal): Promise<void> {
  try {
    const newest = last ?? (await findNewestChange())
    if (signal.aborted) return
    last = newest
    for await (const change of client.follow({ signal, since: last })) pass(change)
  } catch (error) {
    if (error instanceof GoneError) last = undefined
    // Another login of the same person ends the stream, too.
    if (error instanceof UnauthenticatedError) await checkSession().catch(() => undefined)
  }
  if (signal.aborted) return
  // The stream ended for a reason that a new attempt may not share. Changes in between may be lost to it.
  for (const listener of gapListeners) listener()
  running = undefined
  setTimeout(update, RETRY_MS)
}

function update(): void {
  const isWanted = session.value.status === 'signed-in' && !document.hidden
  if (isWanted && !running) {
    running = new AbortController()
    void follow(running.signal)
  } else if (!isWanted && running) {
    running.abort()
    running = undefined
  }
}

/** Starts once, when the application starts. */
export function startLiveChanges(): void {
  document.addEventListener('visibilitychange', update)
  session.subscribe(update)
  // Changes may have been missed while the service could not be reached.
  isOffline.subscribe(() => {
    if (!isOffline.value) for (const listener of gapListeners) listener()
  })
  update()
}
