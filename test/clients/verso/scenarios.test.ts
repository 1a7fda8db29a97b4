import { afterAll, beforeAll, test } from 'vitest'
import { onEveryEngine, PASSWORD, startService, USERNAME, type Service } from '../../targets.js'
import { SCENARIOS } from './scenarios.js'

onEveryEngine((engine) => {
  let service: Service

  beforeAll(async () => {
    service = await startService(engine)
  })
  afterAll(() => service.close())

  test.each(Object.entries(SCENARIOS))('the client %s', async (_, scenario) => {
    await scenario({ url: service.url, username: USERNAME, password: PASSWORD })
  })
})
