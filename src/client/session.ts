// The credentials of one client. Nothing here is shared between clients: two users in one process never mix.
import type { Account } from '../wire.js'
import type { CallScope } from './call-scope.js'
import { createRequestError, RequestError } from './errors.js'

/** A user name and a password, an API key, or nothing in a page that uses the session of its own origin. */
export type ClientCredentials =
  | { readonly username: string; readonly password: string; readonly key?: undefined }
  | { readonly key: string; readonly username?: undefined; readonly password?: undefined }
  | { readonly username?: undefined; readonly password?: undefined; readonly key?: undefined }

/** Headers that authenticate a request. */
export interface Ticket {
  readonly headers: Readonly<Record<string, string>>
  /** The login that the request relies on. */
  readonly login: Promise<Account> | undefined
}

const CSRF_COOKIE = /(?:^|;\s*)CSRF-TOKEN=([^;]*)/g

export class ClientSession {
  /** Cookies that this client keeps itself. Empty in a browser, which hides them from scripts. */
  readonly #cookies = new Map<string, string>()
  #login: Promise<Account> | undefined
  #csrfToken: string | null = null
  /** The service has rejected the credentials: sent again and again, they would exhaust the login attempts of the account. */
  #isRejected = false

  /** `logIn` sends the credentials, with its own time limit, because several calls may wait for it. */
  constructor(
    readonly credentials: ClientCredentials,
    private readonly logIn: (body: object, headers: Ticket['headers']) => Promise<Account>,
  ) {}

  get canLogIn(): boolean {
    return this.credentials.password !== undefined
  }

  get isOpen(): boolean {
    return this.#login !== undefined
  }

  /** Logs in if there is no session yet. Concurrent calls share one login. */
  async open(scope: CallScope): Promise<Ticket> {
    if (this.canLogIn) await this.waitForLogin(scope)
    this.requireOwnCookie()
    return { headers: this.#buildHeaders(), login: this.#login }
  }

  /** Logs in as `waitForLogin` does, and also after the service has rejected the credentials. */
  async tryLogin(scope: CallScope): Promise<Account> {
    if (this.#isRejected) this.forget()
    return this.waitForLogin(scope)
  }

  async waitForLogin(scope: CallScope): Promise<Account> {
    const login = (this.#login ??= this.#startLogin())
    try {
      return await scope.race(login)
    } catch (error) {
      // Each call gets an error of its own, with the stack of its caller.
      if (error instanceof RequestError && !scope.signal.aborted) throw createRequestError(error.details)
      throw error
    }
  }

  /** Forgets a session that the service no longer knows. A newer one stays. */
  expire({ login }: Ticket): void {
    if (this.#login === login) this.#login = undefined
  }

  forget(): void {
    this.#login = undefined
    this.#isRejected = false
    this.#csrfToken = null
    this.#cookies.clear()
  }

  /** Keeps the cookies of a response, where the platform shows them to programs. */
  keepCookies({ headers }: Response): void {
    // Some older platforms have no getSetCookie; they are browsers, which keep cookies themselves.
    for (const cookie of (headers as Partial<Headers>).getSetCookie?.call(headers) ?? []) {
      const [pair = '', ...attributes] = cookie.split(';')
      const name = pair.slice(0, pair.indexOf('=')).trim()
      const isEnded = attributes.some((each) => /^\s*max-age\s*=\s*(0|-.*)\s*$/i.test(each))
      if (isEnded) this.#cookies.delete(name)
      else this.#cookies.set(name, pair.slice(pair.indexOf('=') + 1).trim())
    }
  }

  /** A browser has one session for all its tabs. After the login of somebody else, a request would act for them. */
  requireOwnCookie(): void {
    const { document } = globalThis as { readonly document?: { readonly cookie: string } }
    if (document === undefined || this.#csrfToken === null) return
    const tokens = [...document.cookie.matchAll(CSRF_COOKIE)].map(([, token]) => token)
    if (tokens.length === 0 || tokens.includes(this.#csrfToken)) return
    throw createRequestError({
      kind: 'session',
      message: 'Another login has replaced the session of this client in the browser. Connect again',
    })
  }

  /** Called with the response to a login. */
  keepLogin(response: Response): void {
    this.#csrfToken = response.headers.get('x-csrf-token')
  }

  #startLogin(): Promise<Account> {
    const { username, password } = this.credentials
    // The browser has the new cookie before the program gets the response, so nothing is compared until then.
    this.#csrfToken = null
    const login = this.logIn({ username, password }, this.#buildHeaders())
    login.catch((error: unknown) => {
      // Nobody may be waiting any more. The next call logs in again, unless the service has rejected the credentials.
      if (isRejection(error)) this.#isRejected = true
      else if (this.#login === login) this.#login = undefined
    })
    return login
  }

  #buildHeaders(): Ticket['headers'] {
    const { key } = this.credentials
    if (key !== undefined) return { 'api-key': key }
    const cookies = [...this.#cookies].map(([name, value]) => `${name}=${value}`)
    return cookies.length === 0 ? {} : { cookie: cookies.join('; ') }
  }
}

function isRejection(error: unknown): boolean {
  return error instanceof RequestError && error.status === 401
}
