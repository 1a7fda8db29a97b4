// A backup beside writers contains a state that existed: a prefix of the Log, whole batches, and the files of that state.
import { describe, expect, test } from 'vitest'
import { Catalog } from '../../src/model/catalog/catalog.js'
import { writeBackup } from '../../src/service/backup/backup.js'
import type { Database } from '../../src/store/engine/database.js'
import { openDatabase } from '../../src/store/open.js'
import { models } from '../models.js'
import { withoutRetention, withoutSnapshot } from '../mutants/backup.js'
import { enter, ENGINES, newLocation, onEveryEngine, startService, type Engine } from '../targets.js'
import { backupOf, DATABASE_OPTIONS, restoreInto } from '../transfer/backup-fixture.js'
import { fill } from '../transfer/transfer-fixture.js'
import { BackupLoad } from './backup-load.js'

type Mutant = (db: Database) => Database

async function findViolations(from: Engine, to: Engine, mutant: Mutant = (db) => db): Promise<string[]> {
  const service = await startService(from)
  const location = await newLocation(to)
  const restored = await openDatabase(location.url, DATABASE_OPTIONS)
  try {
    const records = await enter(service, 'http')
    await fill(service.app, records)
    return await new BackupLoad(records).check(
      service.app.db,
      () => backupOf(mutant(service.app.db)),
      async (backup) => {
        // Compares the records with the Log, and the files with their rows, too.
        await restoreInto(restored, backup, Catalog.from(models))
        return restored
      },
    )
  } finally {
    await restored.close()
    location.remove()
    await service.close()
  }
}

describe.each(ENGINES.flatMap((from) => ENGINES.map((to) => ({ from, to }))))(
  '$from to $to',
  ({ from, to }) => {
    test('a backup under load is restored as a state that existed', async () => {
      expect(await findViolations(from, to)).toEqual([])
    })
  },
)

onEveryEngine((engine) => {
  test('a mutant without a snapshot is caught', async () => {
    // A fast machine may finish a backup between two writes.
    for (let attempt = 1; attempt <= 5; attempt++) {
      const found = await findViolations(engine, 'sqlite', withoutSnapshot).catch((error: unknown) => [
        String(error),
      ])
      if (found.length > 0) return
    }
    expect.unreachable('no run found a mixed state')
  })

  test('the content of a file that is removed while the backup runs is in the backup', async () => {
    await backUpBesideRemoval(engine, (db) => db)
  })
})

test('a mutant that removes content beside a backup is caught', async () => {
  await expect(backUpBesideRemoval('sqlite', withoutRetention)).rejects.toThrow(/has no content/)
})

/** Stops the backup after its first bytes, removes all files, and continues. */
async function backUpBesideRemoval(engine: Engine, mutant: Mutant): Promise<void> {
  const service = await startService(engine)
  const location = await newLocation('sqlite')
  try {
    const records = await enter(service, 'direct')
    await fill(service.app, records)
    const papers = (await records.search('doc.Paper')).data
    const chunks: Uint8Array[] = []
    await writeBackup(mutant(service.app.db), {
      release: 'test',
      sink: async (bytes) => {
        if (chunks.push(Uint8Array.from(bytes)) !== 4) return
        for (const { id } of papers) await records.remove('doc.Paper', id)
        await service.app.db.blobs.collect()
        await service.app.db.blobs.recover(0)
      },
    })
    const restored = await openDatabase(location.url, DATABASE_OPTIONS)
    try {
      await restoreInto(restored, Buffer.concat(chunks), Catalog.from(models))
      const [row] = await restored.reader.all('select count(*) as "files" from verso_file')
      expect(Number(row?.['files'])).toBeGreaterThan(papers.length)
    } finally {
      await restored.close()
    }
    // The removal is made up for after the backup.
    await service.app.db.blobs.collect()
    const strays: string[] = []
    for await (const stray of service.app.db.blobs.findOrphans()) strays.push(stray)
    expect(strays).toEqual([])
  } finally {
    await service.close()
    location.remove()
  }
}
