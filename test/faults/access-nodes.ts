// Two nodes on one database, and users who lose access on one node while the other still has them in its cache.
import { afterAll, beforeAll } from 'vitest'
import { addUser } from '../../src/service/auth/accounts.js'
import { createKey } from '../../src/service/auth/keys.js'
import { hashToken, createToken } from '../../src/service/auth/tokens.js'
import { SERVICE_PRINCIPAL } from '../../src/service/context/principal.js'
import { insertSession } from '../../src/store/auth/sessions.js'
import { HttpClient } from '../http-client.js'
import {
  PASSWORD,
  preparedLocation,
  startService,
  USERNAME,
  type Engine,
  type DatabaseLocation,
  type Service,
} from '../targets.js'
import { asUser, JSON_BODY, send, type Answer } from '../wire/exchange.js'
import { createContext } from '../../src/service/context/context.js'

export const CONTACT = 'crm.Contact'
export const PATH = `/ws/rest/${CONTACT}`
export const NEW_PASSWORD = 'an entirely new password'

/** The credentials of a request. */
export type Credentials = Readonly<Record<string, string>>

export interface Somebody {
  readonly id: number
  readonly username: string
  readonly cookie: string
  readonly session: Credentials
  readonly key: Credentials
  readonly keyId: number
}

export class AccessNodes {
  count = 0

  constructor(
    readonly location: DatabaseLocation,
    readonly here: Service,
    readonly there: Service,
    /** A client of the first node. */
    readonly admin: HttpClient,
  ) {}

  /** Opens a session like a login does, without the cost of a password hash. */
  async open(userId: number): Promise<string> {
    const { app, clock } = this.here
    const [token, now] = [createToken(), clock.now()]
    const session = { hash: hashToken(token), userId, createdMs: now, seenMs: now }
    await app.db.transaction((tx) => insertSession(tx, { ...session, address: null, agent: null }))
    return `JSESSIONID=${token}`
  }

  async somebody(roles: readonly string[] = ['editor']): Promise<Somebody> {
    const { app } = this.here
    const username = `user${++this.count}`
    const id = await addUser(app, { username, password: PASSWORD, roles })
    const { key, record } = await createKey(createContext(app, SERVICE_PRINCIPAL), {
      user: id,
      name: 'a program',
    })
    const cookie = await this.open(id)
    return { id, username, cookie, session: { cookie }, key: { 'api-key': key }, keyId: record.id }
  }

  async logOut(cookie: string, url = this.here.url): Promise<void> {
    await asUser(url, cookie).get('/logout')
  }

  async read(who: Credentials): Promise<number> {
    return (await send(this.there.url, { path: PATH, headers: who })).status
  }

  async create(who: Credentials, firstName: string, url = this.there.url): Promise<Answer> {
    const headers = { ...JSON_BODY, ...who }
    const body = JSON.stringify({ data: { firstName } })
    return send(url, { method: 'PUT', path: PATH, headers, body })
  }

  /** The number of records with this name. */
  async written(firstName: string): Promise<number> {
    const criteria = [{ fieldName: 'firstName', operator: '=', value: firstName }]
    return (await this.admin.search(CONTACT, { data: { criteria } })).total
  }
}

/** For a group of tests. */
export function withAccessNodes(engine: Engine): () => AccessNodes {
  let nodes: AccessNodes | undefined
  beforeAll(async () => {
    const location = await preparedLocation(engine)
    const here = await startService(engine, { location })
    const there = await startService(engine, { location, http: { basicAuth: true } })
    there.clock.standStill()
    nodes = new AccessNodes(location, here, there, await HttpClient.login(here.url, USERNAME, PASSWORD))
  })
  afterAll(async () => {
    await nodes?.here.close()
    await nodes?.there.close()
    nodes?.location.remove()
  })
  return () => {
    if (!nodes) throw new Error('the nodes have not started')
    return nodes
  }
}
