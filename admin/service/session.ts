// The session of the person: who is signed in, and what happens when the session ends.
import { connect, RequestError, type Account } from 'verso-records/client'
import { BASE_PATH } from './base-path.js'
import { Observable } from './observable.js'

export interface DemoAccount {
  readonly username: string
  readonly password: string
}

/** `ended`: the service no longer knows the session, and the pages stay open below a dialog that asks for the password. */
export type SessionState =
  | { readonly status: 'unknown' }
  | { readonly status: 'signed-out' }
  | { readonly status: 'signed-in' | 'ended'; readonly account: Account }

export const session = new Observable<SessionState>({ status: 'unknown' })

/** Set by the answer of the service before anybody is signed in. */
export const demoAccount = new Observable<DemoAccount | undefined>(undefined)

const UNAUTHENTICATED = 401

/** True while the service cannot be reached. */
export const isOffline = new Observable(false)

/** Sends a request as the person who sees the page, and notices the end of the session, whatever request it is. */
export async function sessionFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  await requireSamePerson()
  const response = await reach(input, init)
  if (response.status === UNAUTHENTICATED && !isLogin(input)) await checkSession()
  return response
}

/** Notices that the service cannot be reached. */
async function reach(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    return await fetch(input, init)
  } catch (error) {
    if (init?.signal?.aborted !== true) void probe()
    throw error
  }
}

const PROBE_MS = 2_000
let isProbing = false

/** One request may fail for a reason of its own. The service is away if a plain request fails, too, until one succeeds. */
async function probe(): Promise<void> {
  if (isProbing) return
  isProbing = true
  for (;;) {
    const response = await fetch(`${BASE_PATH}/ws/public/app/info`).catch(() => undefined)
    isOffline.set(!response?.ok)
    if (response?.ok) break
    await new Promise((resolve) => setTimeout(resolve, PROBE_MS))
  }
  isProbing = false
}

export const client = connect(`${location.origin}${BASE_PATH}`, {}, { fetch: sessionFetch })

function isLogin(input: RequestInfo | URL): boolean {
  return input instanceof Request ? false : String(input).endsWith('/callback')
}

/** Each login has a cookie of its own, which scripts can read. Undefined while nobody is signed in, and during a login. */
let csrfCookie: string | undefined

function readCsrfCookie(): string | undefined {
  return /(?:^|;\s*)CSRF-TOKEN=([^;]*)/.exec(document.cookie)?.[1]
}

/**
 * All tabs of a browser share one session. After a login in another tab, this tab would act for whoever logged in there. Another login of
 * the same person changes nothing. That of another one loads the page again, and nothing is sent; drafts are kept.
 */
async function requireSamePerson(): Promise<void> {
  const current = readCsrfCookie()
  if (csrfCookie === undefined || current === undefined || current === csrfCookie) return
  if ('account' in session.value) await checkSession()
}

let check: Promise<void> | undefined

/** Asks the service whose session the browser has now. Concurrent calls share one request. */
export async function checkSession(): Promise<void> {
  check ??= compareSession().finally(() => {
    check = undefined
  })
  await check
}

async function compareSession(): Promise<void> {
  const { value } = session
  if (!('account' in value)) return
  const cookie = readCsrfCookie()
  const response = await reach(`${BASE_PATH}/ws/me`)
  // The person has signed out meanwhile.
  if (!('account' in session.value)) return
  const { account } = value
  if (response.status === UNAUTHENTICATED) {
    if (session.value.status !== 'ended') session.set({ status: 'ended', account })
    return
  }
  if (!response.ok) throw new TypeError('The service does not say whose session this is')
  const { data } = (await response.json()) as { data: readonly Account[] }
  if (data[0]?.id !== account.id) {
    location.reload()
    // The page goes away, so nothing is sent.
    await new Promise(() => undefined)
  }
  csrfCookie = cookie
  session.set({ status: 'signed-in', account })
}

/** Finds out who is signed in. A service that cannot be reached rejects the call. */
export async function loadSession(): Promise<void> {
  const { body } = await client.request('GET', '/ws/public/app/info')
  const info = body as { user?: unknown; authentication?: { demo?: DemoAccount } }
  demoAccount.set(info.authentication?.demo)
  if (info.user === undefined) session.set({ status: 'signed-out' })
  else await adoptAccount()
}

async function adoptAccount(): Promise<void> {
  try {
    const account = await client.login()
    csrfCookie = readCsrfCookie()
    session.set({ status: 'signed-in', account })
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== UNAUTHENTICATED) throw error
    session.set({ status: 'signed-out' })
  }
}

/** Signs in. After the end of a session, another person gets a page of their own. */
export async function signIn(username: string, password: string): Promise<void> {
  const { value } = session
  const former = csrfCookie
  csrfCookie = undefined
  try {
    await client.request('POST', '/callback', { body: { username, password } })
  } catch (error) {
    csrfCookie = former
    throw error
  }
  await adoptAccount()
  const now = session.value
  if (value.status === 'ended' && now.status === 'signed-in' && now.account.id !== value.account.id)
    location.reload()
}

export async function signOut(): Promise<void> {
  const { value } = session
  // First, so that the end of the session is no news for the stream of changes.
  session.set({ status: 'signed-out' })
  try {
    await client.logout()
    csrfCookie = undefined
  } catch (error) {
    session.set(value)
    throw error
  }
}

/** Waits until the person is signed in again. Returns false if somebody else signs in, or if the person signs out. */
export async function waitForSession(): Promise<boolean> {
  const before = session.value
  if (before.status === 'ended')
    await new Promise<void>((resolve) => {
      const stop = session.subscribe(() => {
        if (session.value.status === 'ended') return
        stop()
        resolve()
      })
    })
  const { value } = session
  return value.status === 'signed-in' && 'account' in before && value.account.id === before.account.id
}

/** The person who is signed in. Only for components below the sign-in page. */
export function getAccount(): Account {
  const { value } = session
  if (!('account' in value)) throw new Error('Nobody is signed in')
  return value.account
}

const WATCH_MS = 1_000

/** While a dialog asks for the password, another tab may sign in: then this tab goes on, too. */
export function watchForLogin(): () => void {
  const timer = setInterval(() => {
    const current = readCsrfCookie()
    if (current !== undefined && current !== csrfCookie) void checkSession().catch(() => undefined)
  }, WATCH_MS)
  return () => clearInterval(timer)
}
