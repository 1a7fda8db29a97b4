import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killRepeatedly } from './kills.js'

onEveryEngine((engine) => {
  test('3 kills under load lose no acknowledged write', async () => {
    const { violations, acknowledged } = await killRepeatedly(engine, 3)
    expect(violations).toEqual([])
    expect(acknowledged).toBeGreaterThan(30)
  })

  test('the mutant that answers before it commits is caught by 5 kills', async () => {
    const { violations } = await killRepeatedly(engine, 5, 'answersBeforeCommit')
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged as .* and is/))
  })
})
