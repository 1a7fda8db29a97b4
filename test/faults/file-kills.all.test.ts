import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killUploads } from './file-kills.js'

onEveryEngine((engine) => {
  test('6 kills during uploads lose no acknowledged file, and leave no orphaned content', async () => {
    const { violations, acknowledged } = await killUploads(engine, 6)
    expect(violations).toEqual([])
    expect(acknowledged).toBeGreaterThan(6 * 10)
  })
})
