// The matrix catches permissions that are broken in one place.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordsFor } from '../../src/service/records/records.js'
import { openLab, type Lab } from './project-fixture.js'
import { compareReading, compareWriting, type Part } from './matrix.js'
import { READING_TWINS, WRITING_TWINS } from '../mutants/permissions.js'

/** The roles that hide something; mutants cannot reveal anything to the others. */
const ROLES = ['three', 'masks', 'neighbours', 'sums', 'own', 'reader', 'overlaps', 'lists']
const PART: Part = { every: 1, from: 0, roles: ROLES, atMost: 1 }

let lab: Lab
beforeAll(async () => {
  lab = await openLab('sqlite')
})
afterAll(async () => {
  await lab.close()
})

test('unbroken permissions pass the matrix', { timeout: 120_000 }, async () => {
  const enter = (role: string) => recordsFor(lab.app, lab.actor(role))
  const reading = await compareReading(lab, 'direct', PART, enter)
  const writing = await compareWriting(lab, PART, enter)
  expect([...reading.differences, ...writing.differences]).toEqual([])
})

describe('mutants of permissions', () => {
  test.for(Object.entries(READING_TWINS))(
    'the matrix catches a mutant of reads by which %s',
    { timeout: 120_000 },
    async ([, twin]) => {
      const app = twin(lab.app)
      const enter = (role: string) => recordsFor(app, lab.actor(role))
      const { differences } = await compareReading(lab, 'direct', PART, enter)
      expect(differences).not.toEqual([])
    },
  )

  test.for(Object.entries(WRITING_TWINS))(
    'the matrix catches a mutant of writes by which %s',
    { timeout: 120_000 },
    async ([, twin]) => {
      const app = twin(lab.app)
      const enter = (role: string) => recordsFor(app, lab.actor(role))
      const { differences } = await compareWriting(lab, PART, enter)
      expect(differences).not.toEqual([])
    },
  )
})
