// A service behind a proxy with faults, for a file of tests.
import { afterAll, afterEach, beforeAll } from 'vitest'
import { connect, type Client, type ConnectOptions } from 'verso-records/client'
import { PASSWORD, startService, USERNAME, type Engine, type Service } from '../../targets.js'
import { startFaultyProxy, type FaultyProxy } from './faulty-proxy.js'

export interface ProxiedService {
  readonly proxy: FaultyProxy
  /** Connects a client through the proxy. A mutant of the client brings its own `connect`. */
  readonly open: (options?: ConnectOptions, connectClient?: typeof connect) => Client
}

/** Starts both before the tests and stops them afterwards. No fault outlives its test. */
export function useProxiedService(engine: Engine): ProxiedService {
  let service: Service
  let proxy: FaultyProxy
  beforeAll(async () => {
    service = await startService(engine)
    proxy = await startFaultyProxy(service.url)
  })
  afterAll(async () => {
    await proxy.close()
    await service.close()
  })
  afterEach(() => {
    proxy.choose = () => undefined
  })
  return {
    get proxy() {
      return proxy
    },
    open: (options, connectClient = connect) =>
      connectClient(proxy.url, { username: USERNAME, password: PASSWORD }, options),
  }
}
