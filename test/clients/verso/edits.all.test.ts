import { expect, test } from 'vitest'
import { newKeyForEachAttempt } from '../../mutants/client.js'
import { onEveryEngine } from '../../targets.js'
import { runEdits } from './proved-edits.js'

const EDITS = 1_000

onEveryEngine((engine) => {
  test('1,000 edits by 8 clients over lost connections and kills: none is lost or doubled', async () => {
    const result = await runEdits(engine, { edits: EDITS, kills: 2, seed: 7, shareOfFaults: 0.05 })
    const { violations, edits, conflicts, faults, kills, followed } = result
    console.info(
      `${engine}: ${edits} edits, ${conflicts} conflicts, ${faults} lost connections, ${kills} kills, ${followed} changes followed, ${violations.length} violations`,
    )
    expect(violations).toEqual([])
    expect(edits).toBeGreaterThanOrEqual(EDITS)
    expect(conflicts).toBeGreaterThan(EDITS / 10)
    expect(faults).toBeGreaterThan(EDITS / 20)
    expect(kills).toBe(3)
    expect(followed).toBeGreaterThanOrEqual(edits)
  })

  test('the mutant that sends a new key with each attempt is caught', async () => {
    const { violations } = await runEdits(engine, {
      edits: 80,
      kills: 0,
      seed: 7,
      // So that some responses to updates are lost, whichever requests the faults meet.
      shareOfFaults: 0.3,
      fetch: newKeyForEachAttempt(fetch),
    })
    // A repeated update gets a conflict with itself, and its value is there nevertheless; a repeated create makes a second record.
    expect(violations).toContainEqual(expect.stringMatching(/^refused-but-there: /))
  })
})
