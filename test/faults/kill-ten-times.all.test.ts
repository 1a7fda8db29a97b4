import { expect, test } from 'vitest'
import { onEveryEngine } from '../targets.js'
import { killRepeatedly } from './kills.js'

onEveryEngine((engine) => {
  test('10 kills under load lose no acknowledged write', async () => {
    const { violations, acknowledged } = await killRepeatedly(engine, 10)
    console.info(`${engine}: 10 kills, ${acknowledged} acknowledged writes, ${violations.length} violations`)
    expect(violations).toEqual([])
    expect(acknowledged).toBeGreaterThan(10 * 20)
  })

  test('the mutant that answers before it commits is caught by 10 kills', async () => {
    const { violations } = await killRepeatedly(engine, 10, 'answersBeforeCommit')
    expect(violations).toContainEqual(expect.stringMatching(/was acknowledged as .* and is/))
  })
})
