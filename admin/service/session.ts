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

/** Tells the application that a session has ended, whatever request noticed it. */
async function watchedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  requireSamePerson()
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

/** All tabs of a browser share one session. After the login of somebody else in another tab, this tab would act for them. */
let csrfCookie: string | undefined

function readCsrfCookie(): string | undefined {
  return /(?:^|;\s*)CSRF-TOKEN=([^;]*)/.exec(document.cookie)?.[1]
}

function requireSamePerson(): void {
  const current = readCsrfCookie()
  if (csrfCookie === undefined || current === undefined || current === csrfCookie) return
  csrfCookie = current
  void checkPerson()
}

/** Another login of the same person changes nothing. That of another one loads the page again; drafts are kept. */
async function checkPerson(): Promise<void> {
  const { value } = session
  if (!('account' in value)) return
  const account = await client.login().catch(() => undefined)
  if (account && account.id !== value.account.id) location.reload()
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
