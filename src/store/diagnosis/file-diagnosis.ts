// Checks the files that the service keeps beside an SQLite database: the marker of an open database, and the reserve for a full disk.
import { isNotWritable } from '../engine/file-errors.js'
import { inspectReserve, type ReserveInspection, type ReserveState } from '../sqlite/disk/disk-reserve.js'
import { inspectMarker } from '../sqlite/disk/open-marker.js'
import { createDiagnosis, type Diagnosis, type DiagnosisLevel } from './diagnosis.js'

const LAST_STOP = 'last stop'

/** Reports an unclean stop, and a database that the service refuses because commits are missing. */
export async function diagnoseLastStop(file: string): Promise<Diagnosis> {
  try {
    const { pid, isUnclean, lost } = await inspectMarker(file)
    if (lost !== undefined)
      return createDiagnosis(
        LAST_STOP,
        'problem',
        `the service refuses this database: ${lost}`,
        `Copy all files beside it, then put the missing file back or restore a backup. To start without the lost data, delete ${file}.open and ${file}-wal.`,
      )
    if (isUnclean)
      return createDiagnosis(
        LAST_STOP,
        'warning',
        'the last process has ended without a clean stop: it was killed, or the computer lost power',
        'Start the service: it checks the pages of the file, and its log has the result.',
      )
    return pid === undefined
      ? createDiagnosis(LAST_STOP, 'ok', 'the last process has stopped cleanly')
      : createDiagnosis(LAST_STOP, 'ok', `none: process ${pid} has the database open`)
  } catch (error) {
    if (!isNotWritable(error)) throw error
    return createDiagnosis(
      LAST_STOP,
      'problem',
      `a file beside ${file} cannot be read`,
      'Run this as the user of the service, or correct the owner of the file.',
    )
  }
}

const RESERVE_STATES: Readonly<
  Record<ReserveState, readonly [level: DiagnosisLevel, describe: (found: ReserveInspection) => string]>
> = {
  kept: ['ok', ({ bytes }) => `${roundToMegabytes(bytes)} are kept for a full disk`],
  none: ['ok', () => 'none yet: a service makes it within a second of its start'],
  scarce: [
    'warning',
    () => 'the disk has too little room for it: after a full disk, the service continues to reject writes',
  ],
  full: [
    'problem',
    () => 'the disk has no room for it: the service rejects all writes but logins and deletes',
  ],
}

/** The reserve lets logins and deletes succeed on a full disk. 0 bytes: the settings say that there is none. */
export function diagnoseReserve(file: string, sizeBytes: number): Diagnosis {
  if (sizeBytes === 0)
    return createDiagnosis(
      'disk reserve',
      'ok',
      'none, because of --disk-reserve 0: a full disk stops all writes',
    )
  const found = inspectReserve(file, sizeBytes)
  const [level, describe] = RESERVE_STATES[found.state]
  const advice = `Free space until ${roundToMegabytes(found.neededBytes)} are free. The service makes the reserve by itself.`
  return createDiagnosis('disk reserve', level, describe(found), level === 'ok' ? undefined : advice)
}

function roundToMegabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 ** 2)} MB`
}
