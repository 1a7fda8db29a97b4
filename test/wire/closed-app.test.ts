import { expect, test } from 'vitest'
import { onEveryEngine, startService } from '../targets.js'
import { asUser, json, openSession } from './exchange.js'

onEveryEngine((engine) => {
  test('requests to a server whose app is closed already get 503, and the process goes on', async () => {
    const service = await startService(engine, { expects: ['busy'] })
    const cookie = await openSession(service.url)
    await service.app.close()
    for (const path of ['/ws/me', '/ws/rest/crm.Contact', '/ws/rest/crm.Contact/1']) {
      const answer = await asUser(service.url, cookie).get(path)
      expect(answer.status, answer.text).toBe(503)
      expect(json(answer)).toMatchObject({ status: -1, data: { kind: 'busy' } })
    }
    await service.server.close()
    service.location.remove()
  })
})
