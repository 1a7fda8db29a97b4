// Scenarios in which several clients change the same record.
import { ConflictError, type WireRecord } from '../../../src/client/index.js'
import { equal, isTrue, rejection } from './claims.js'
import { label, open, type Scenario, type ScenarioService } from './scenario-service.js'

async function mergeDifferentFields(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ firstName: 'Ada', lastName: label() })
  let runs = 0
  const merged = await contacts.update(id, async (record) => {
    runs++
    await contacts.update(id, { version: record.version, email: 'theirs@example.org' })
    // A whole record comes back: only what differs is sent.
    return { ...record, notes: 'ours' }
  })
  equal([merged.version, merged['email'], merged['notes'], runs], [2, 'theirs@example.org', 'ours', 1])
  equal((await contacts.update(id, (record) => ({ ...record }))).version, 2)
  equal((await contacts.update(id, () => ({}))).version, 2)
  const error = await rejection(
    TypeError,
    contacts.update(id, (record) => Object.assign(record, { notes: 'in place' })),
  )
  isTrue(/read.only/i.test(error.message), error.message)
  const strict = { merge: false } as const
  await rejection(ConflictError, contacts.update(id, { version: 1, firstName: 'Eve' }, strict))
  // There is no function to run again.
  await rejection(TypeError, contacts.update(id, { version: 1, firstName: 'Eve' }, { onConflict: 'retry' }))
}

async function resolveConflicts(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ lastName: 'base', notes: 'base', email: 'base' })
  let clashes = 0
  const saved = await contacts.update(
    id,
    async ({ version }) => {
      await contacts.update(id, { version, notes: 'theirs', phones: [1] })
      return { notes: 'ours', email: 'ours' }
    },
    {
      onConflict: async ({ base, ours, theirs, fields }) => {
        clashes++
        if (clashes === 1) {
          equal(
            [base?.['notes'], ours, theirs['notes']],
            ['base', { notes: 'ours', email: 'ours' }, 'theirs'],
          )
          equal(fields['notes'], { base: 'base', ours: 'ours', theirs: 'theirs', verdict: 'clash' })
          equal([fields['email']?.verdict, fields['phones']?.verdict], ['ours', 'theirs'])
          // Somebody changes the record again while this one is being resolved.
          await contacts.update(id, { version: theirs.version, notes: 'theirs again' })
        }
        return { notes: `${String(theirs['notes'])} and ours` }
      },
    },
  )
  equal(clashes, 2)
  equal([saved['notes'], saved['email'], saved['phones']], ['theirs again and ours', 'ours', [1]])
  const kept = await contacts.update(id, { version: 0, notes: 'late' }, { onConflict: () => undefined })
  equal([kept.version, kept['notes']], [saved.version, 'theirs again and ours'])
}

async function reportConflicts(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ notes: 'base' })
  await contacts.update(id, { version: 0, notes: 'theirs' })
  const error = await rejection(ConflictError, contacts.update(id, { version: 0, notes: 'ours', email: 'e' }))
  equal([error.kind, error.status, error.expected, error.current], ['conflict', 409, 0, 1])
  equal([error.base?.['notes'], error.base?.version, error.theirs['notes']], ['base', 0, 'theirs'])
  // The service does not tell who made the earlier version, and when.
  isTrue(error.theirs['updatedOn'] !== null, 'the current version tells when it was made')
  equal([error.base?.['updatedOn'], error.base?.['updatedBy']], [undefined, undefined])
  equal([error.ours, error.fields['notes']?.verdict], [{ notes: 'ours', email: 'e' }, 'clash'])
  await rejection(ConflictError, contacts.remove(id, { version: 0 }))
  await contacts.update(id, { version: 1, notes: 'theirs again' })
  await rejection(ConflictError, contacts.revert(id, { to: 0, version: 1 }))
  equal((await contacts.read(id))['notes'], 'theirs again')
}

async function countTogether(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ phones: 0 })
  const increments = Array.from({ length: 8 }, () =>
    contacts.update(id, ({ phones }) => ({ phones: (phones as number) + 1 }), { onConflict: 'retry' }),
  )
  equal(
    (await Promise.all(increments)).map(({ phones }) => phones as number).sort(),
    [1, 2, 3, 4, 5, 6, 7, 8],
  )
  equal((await contacts.read(id))['phones'], 8)
}

/** Both count from 0 to 1: the service takes equal values for one change, so it must not merge them. */
async function countWithoutRetry(service: ScenarioService): Promise<void> {
  const contacts = open(service).model('crm.Contact')
  const { id } = await contacts.create({ phones: 0 })
  const count = ({ phones }: WireRecord) => ({ phones: (phones as number) + 1 })
  let others = 0
  const counted = await contacts.update(id, async (record) => {
    // Somebody else counts after this function got its record.
    if (others++ === 0) await contacts.update(id, count)
    return count(record)
  })
  equal([counted['phones'], counted.version], [2, 2])
}

/** Scenarios about conflicts by what they show. */
export const CONFLICT_SCENARIOS: Readonly<Record<string, Scenario>> = {
  'merges changes of different fields': mergeDifferentFields,
  'saves the answer of onConflict, also if others change the record again': resolveConflicts,
  'rejects with a ConflictError that has both sides': reportConflicts,
  'counts to eight with eight updates at once that run again after a conflict': countTogether,
  'never takes two equal results of functions for one change': countWithoutRetry,
}
