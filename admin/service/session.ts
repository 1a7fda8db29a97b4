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

/** Sends a request as the person who sees the page, and notices the end of the session, whatever request it is. */
async function watchedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  await requireSamePerson()
  const response = await fetch(input, init)
  if (response.status === UNAUTHENTICATED && !isLogin(input)) endSession()
  return response
}

export const client = connect(`${location.origin}${BASE_PATH}`, {}, { fetch: watchedFetch })

function isLogin(input: RequestInfo | URL): boolean {
  return input instanceof Request ? false : String(input).endsWith('/callback')
}

/** The service no longer knows the session: the dialog asks for the password. */
export function endSession(): void {
  const { value } = session
  if (value.status === 'signed-in') session.set({ status: 'ended', account: value.account })
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
  const { value } = session
  if (csrfCookie === undefined || current === undefined || current === csrfCookie || !('account' in value))
    return
  const response = await fetch(`${BASE_PATH}/ws/me`)
  if (!response.ok) return
  const { data } = (await response.json()) as { data: readonly Account[] }
  if (data[0]?.id === value.account.id) {
    csrfCookie = current
    return
  }
  location.reload()
  // The page goes away, so the request never ends.
  await new Promise(() => undefined)
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
  csrfCookie = undefined
  await client.request('POST', '/callback', { body: { username, password } })
  await adoptAccount()
  const now = session.value
  if (value.status === 'ended' && now.status === 'signed-in' && now.account.id !== value.account.id)
    location.reload()
}

export async function signOut(): Promise<void> {
  await client.logout()
  csrfCookie = undefined
  session.set({ status: 'signed-out' })
}

/** Resolves when somebody is signed in. Rejects never: the dialog waits as long as the person does. */
export async function waitForSession(): Promise<void> {
  if (session.value.status === 'signed-in') return
  await new Promise<void>((resolve) => {
    const stop = session.subscribe(() => {
      if (session.value.status !== 'signed-in') return
      stop()
      resolve()
    })
  })
}

/** The person who is signed in. Only for components below the sign-in page. */
export function getAccount(): Account {
  const { value } = session
  if (!('account' in value)) throw new Error('Nobody is signed in')
  return value.account
}
