// The matrix catches permissions that are broken in one place.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recordsFor } from '../../src/service/records/records.js'
import { openProjectFixture, type ProjectFixture } from './project-fixture.js'
import { compareReading, compareWriting, type Part } from './matrix.js'
import { READ_MUTANTS, WRITE_MUTANTS } from '../mutants/permissions.js'

/** The roles that hide something; mutants cannot reveal anything to the others. */
const ROLES = ['three', 'masks', 'neighbours', 'sums', 'own', 'reader', 'overlaps', 'lists']
const PART: Part = { every: 1, from: 0, roles: ROLES, atMost: 1 }
/** `matrix.all.test.ts` compares more. */
const SAMPLE: Part = { ...PART, every: 5 }

let fixture: ProjectFixture
beforeAll(async () => {
  fixture = await openProjectFixture('sqlite')
})
afterAll(async () => {
  await fixture.close()
})

test('unbroken permissions pass the matrix', async () => {
  const enter = (role: string) => recordsFor(fixture.app, fixture.identity(role))
  const reading = await compareReading(fixture, 'direct', SAMPLE, enter)
  const writing = await compareWriting(fixture, SAMPLE, enter)
  expect([...reading.differences, ...writing.differences]).toEqual([])
})

describe('mutants of permissions', () => {
  test.for(Object.entries(READ_MUTANTS))(
    'the matrix catches a mutant of reads by which %s',
    async ([, mutant]) => {
      const app = mutant(fixture.app)
      const enter = (role: string) => recordsFor(app, fixture.identity(role))
      const { differences } = await compareReading(fixture, 'direct', PART, enter)
      expect(differences).not.toEqual([])
    },
  )

  test.for(Object.entries(WRITE_MUTANTS))(
    'the matrix catches a mutant of writes by which %s',
    async ([, mutant]) => {
      const app = mutant(fixture.app)
      const enter = (role: string) => recordsFor(app, fixture.identity(role))
      const { differences } = await compareWriting(fixture, PART, enter)
      expect(differences).not.toEqual([])
    },
  )
})
