// The entry of the client: one connection of one user.
import type { Account, Change } from '../wire.js'
import { getData, getFirst, type JsonAnswer } from './answer.js'
import type { CallOptions } from './call-scope.js'
import type { AnyRequest, ChangeList, Client, ClientWriteOptions } from './client-types.js'
import { followChanges, fetchChanges, type ChangesParameters, type FollowParameters } from './follow.js'
import { MERGE_HEADERS, ModelVerbs } from './model-verbs.js'
import type { AnyModels } from './types/schema.js'
import type { ClientCredentials } from './session.js'
import { createIdempotencyKey, Transport, type ConnectOptions } from './transport.js'

/** The calls of a client, whatever the models. */
class Connection {
  readonly #transport: Transport

  constructor(url: string | URL, credentials: ClientCredentials, options: ConnectOptions) {
    this.#transport = new Transport(url, credentials, options)
  }

  model(name: string): ModelVerbs {
    return new ModelVerbs(this.#transport, name)
  }

  async batch(
    requests: readonly object[],
    options: ClientWriteOptions & { merge?: boolean } = {},
  ): Promise<unknown> {
    const { merge = false, idempotencyKey: key = createIdempotencyKey() } = options
    const headers = merge ? MERGE_HEADERS : {}
    const request = { method: 'POST', path: '/ws/batch', body: { requests }, headers, key }
    return this.#transport.run(options, async (scope) =>
      getData((await this.#transport.send(scope, request)).body),
    )
  }

  async changes(query: ChangesParameters = {}, options?: CallOptions): Promise<ChangeList> {
    return this.#transport.run(options, (scope) => fetchChanges(this.#transport, scope, query))
  }

  follow(options: FollowParameters = {}): AsyncIterableIterator<Change> {
    return followChanges(this.#transport, options)
  }

  /** Logs in now, with a password; otherwise reads the account of the key or the session. */
  async login(options?: CallOptions): Promise<Account> {
    const { session } = this.#transport
    return this.#transport.run(options, async (scope) => {
      if (session.canLogIn) return session.tryLogin(scope)
      const { body } = await this.#transport.send(scope, { method: 'GET', path: '/ws/me' })
      return getFirst(body) as Account
    })
  }

  /** Ends the session. A later call logs in again. A key has no session. */
  async logout(options?: CallOptions): Promise<void> {
    const { session } = this.#transport
    const hasSession = session.canLogIn ? session.isOpen : session.credentials.key === undefined
    if (!hasSession) return
    // A logout may be repeated: without a session it changes nothing.
    const request = { method: 'POST', path: '/logout', isRead: true }
    await this.#transport.run(options, (scope) => this.#transport.send(scope, request))
    session.forget()
  }

  /** Sends any request. A write is repeated after a lost connection only with an `idempotencyKey`. */
  async request(method: string, path: string, options: AnyRequest = {}): Promise<JsonAnswer> {
    const { query, body, headers, idempotencyKey: key } = options
    const request = { method: method.toUpperCase(), path, query, body, headers, key }
    return this.#transport.run(options, (scope) => this.#transport.sendAny(scope, request))
  }
}

/**
 * Connects a program to a service. It sends nothing yet: the first call logs in. `S` is `typeof models`, or the interface that
 * `verso types` writes.
 *
 * @example
 * const verso = connect<Models>('https://records.example.org', { key })
 * const { data } = await verso.model('todo.Task').find({ filter: { state: 'open' } })
 */
export function connect<S = AnyModels>(
  url: string | URL,
  credentials: ClientCredentials = {},
  options: ConnectOptions = {},
): Client<S> {
  // The types of models exist only at compile time; the calls are the same for all of them.
  return new Connection(url, credentials, options) as unknown as Client<S>
}
