import { expect, test } from 'vitest'
import { startService } from '../targets.js'
import { loginTo, takeEquallyLong } from './login-times.js'

test('a login takes equally long for known and unknown users, within a tenth, over 400 logins', async () => {
  const service = await startService('sqlite', { isNew: true })
  try {
    expect(await takeEquallyLong(loginTo(service), 400)).toBe(true)
  } finally {
    await service.close()
  }
})
