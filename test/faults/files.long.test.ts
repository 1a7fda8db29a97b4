import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killUploads } from './file-kills.js'

onEveryEngine((engine) => {
  test('6 kills in the middle of uploads lose nothing that was acknowledged, and leave nothing', async () => {
    const { violations, acknowledged } = await killUploads(engine, 6)
    expect(violations).toEqual([])
    expect(acknowledged).toBeGreaterThan(6 * 10)
  })
})
