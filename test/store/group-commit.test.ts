// Members of a group that run one after the other in one transaction of SQLite. A failed member leaves nothing, and the others lose nothing.
import { expect, test } from 'vitest'
import { GroupCommit, type GroupEngine } from '../../src/store/engine/group-commit.js'
import type { OpenTransaction, TransactionWork } from '../../src/store/engine/group-transaction.js'
import { SqliteSessions } from '../../src/store/sqlite/connections.js'
import { OpenMarker } from '../../src/store/sqlite/disk/open-marker.js'
import { SqliteWriter } from '../../src/store/sqlite/database.js'
import { newLocation } from '../targets.js'

const INSERT = 'insert into item (code) values (?)'

/** Runs the works in one group and returns the stored codes. */
async function storedBy(
  works: readonly TransactionWork[],
  change: (open: OpenTransaction) => OpenTransaction = (open) => open,
): Promise<unknown[]> {
  const location = await newLocation('sqlite')
  const file = location.url.slice('sqlite:'.length)
  const ignore = () => undefined
  const sessions = await SqliteSessions.open(file, {
    deadline: Date.now() + 1_000,
    diskReserveBytes: 0,
    marker: await OpenMarker.check(file),
    onWriteHealthChange: ignore,
    onReopened: ignore,
    createCheckpointWorker: () => {
      throw new Error('there are too few commits for a checkpoint in the background')
    },
  })
  try {
    const writer = new SqliteWriter(sessions, ignore)
    await writer.run((tx) => tx.run('create table item (id integer primary key, code text)'), {})
    const { modes, maxMembers, slots } = writer
    const engine: GroupEngine = {
      ...{ modes, maxMembers, slots },
      requireAdmission: ignore,
      runAlone: (member) => writer.runAlone(member),
      runShared: (members, work) => writer.runShared(members, (open) => work(change(open))),
    }
    const group = new GroupCommit(engine)
    await Promise.allSettled(works.map((work) => group.run(work, { groupable: {} })))
    return sessions.writer.all('select code from item order by id').map(({ code }) => code)
  } finally {
    await sessions.close()
    location.remove()
  }
}

/** Changes a part of a transaction, which a mutant of an engine reports wrongly. */
function reporting(changed: Partial<OpenTransaction>): (open: OpenTransaction) => OpenTransaction {
  return (open) => ({
    tx: open.tx,
    get writeCount() {
      return changed.writeCount ?? open.writeCount
    },
    get isActive() {
      return changed.isActive ?? open.isActive
    },
    isEngineError: (error) => open.isEngineError(error),
    onMembersDone: () => {
      open.onMembersDone()
    },
  })
}

const insert =
  (code: string): TransactionWork =>
  (tx) =>
    tx.insert(INSERT, [code])

const failing: TransactionWork = async (tx) => {
  await tx.insert(INSERT, ['failed'])
  throw new Error('fails after a write')
}

/** Rolls back the transaction once, as SQLite does on a full disk, and hides it. */
function rollingBack(code: string): TransactionWork {
  let isOver = false
  return async (tx) => {
    if (!isOver) {
      isOver = true
      await tx.run('rollback')
      return
    }
    await tx.insert(INSERT, [code])
  }
}

test('the writes of a failed member are undone, and the others are stored once', async () => {
  expect(await storedBy([insert('a'), failing, insert('c')])).toEqual(['a', 'c'])
})

test('the mutant that does not count the writes of a failed member is caught', async () => {
  const stored = await storedBy([insert('a'), failing, insert('c')], reporting({ writeCount: 0 }))
  expect(stored).not.toEqual(['a', 'c'])
})

test('after a rollback by the engine every member runs again, and is stored once', async () => {
  expect(await storedBy([insert('a'), rollingBack('b'), insert('c')])).toEqual(['a', 'b', 'c'])
})

test('the mutant that does not notice a rollback by the engine is caught', async () => {
  const stored = await storedBy([insert('a'), rollingBack('b'), insert('c')], reporting({ isActive: true }))
  expect(stored).not.toEqual(['a', 'b', 'c'])
})
