import type { RoutePlugin } from '../http/ext/route-plugin.js'
import { createServer, type Server } from '../http/server.js'
import type { HttpSettings } from '../http/settings.js'
import type { App } from '../service/context/app.js'
import type { Gauges } from '../store/engine/database.js'

/** The HTTP server of an App. It is created when it is needed, and closed before the App. */
export class EmbeddedServer {
  #server: Promise<Server> | undefined
  #listening: Promise<readonly string[]> | undefined
  #urls: readonly string[] = []
  #created: Server | undefined
  #closed: Promise<void> | undefined

  constructor(
    private readonly app: App,
    private readonly http: Partial<HttpSettings>,
    private readonly routes: readonly RoutePlugin[],
  ) {}

  get url(): string {
    const [url] = this.#urls
    if (url === undefined) throw new Error('The service does not listen: call await verso.listen() first')
    return url
  }

  /** Creates the server without listening. Throws if a route is wrong. */
  async prepare(): Promise<Server> {
    this.#server ??= createServer(this.app, this.http, { routes: this.routes })
    this.#created = await this.#server
    return this.#created
  }

  gauges(): Gauges {
    return this.#created?.gauges() ?? this.app.db.gauges()
  }

  async listen(): Promise<readonly string[]> {
    if (this.#closed) throw new Error('The service is closed: call createVerso again')
    this.#listening ??= this.#start()
    try {
      return await this.#listening
    } catch (error) {
      // The port may be free later.
      this.#listening = undefined
      throw error
    }
  }

  async close(): Promise<void> {
    this.#closed ??= this.#stop()
    return this.#closed
  }

  async #start(): Promise<readonly string[]> {
    const server = await this.prepare()
    this.#urls = await server.listen()
    return this.#urls
  }

  async #stop(): Promise<void> {
    // A server that is starting must be closed, too. Its error belongs to the caller of listen().
    await this.#listening?.catch(() => undefined)
    const server = await this.#server?.catch(() => undefined)
    this.#urls = []
    try {
      await server?.close()
    } finally {
      await this.app.close()
    }
  }
}
