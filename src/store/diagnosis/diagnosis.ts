// Results of the checks of an installation, and the checks of a database that are equal on both engines.
import { ConfigError } from '../../errors.js'
import { VERSIONS_TABLE } from '../auth/permissions-version.js'
import type { Dialect, Queryable } from '../engine/database.js'
import { MAX_CLOCK_OFFSET_MS } from '../log/clock.js'
import { areInternalTablesCurrent, readDatabaseRows, RESTORE_ROW } from '../schema/internal-tables.js'
import { LOG_TABLE } from '../sql/log-insert.js'

/** `warning`: the service works, but not as it should. `problem`: it does not start, or does not work. */
export type DiagnosisLevel = 'ok' | 'warning' | 'problem'

export interface Diagnosis {
  /** The subject, such as `database` or `disk`. */
  readonly check: string
  readonly level: DiagnosisLevel
  readonly message: string
  /** A sentence that says what to do. */
  readonly advice?: string
}

const CLOCK_ADVICE =
  'Set the clock of this computer, and keep it right with an NTP client: timedatectl set-ntp true.'

export function createDiagnosis(
  check: string,
  level: DiagnosisLevel,
  message: string,
  advice?: string,
): Diagnosis {
  return { check, level, message, ...(advice === undefined ? {} : { advice }) }
}

/** Says if this release can use the internal tables. */
export async function diagnoseTables(db: Queryable, dialect: Dialect): Promise<Diagnosis> {
  if ((await db.all(dialect.findColumn, [VERSIONS_TABLE, 'value'])).length === 0)
    return createDiagnosis(
      'tables',
      'warning',
      'the database has no tables of Verso',
      'The first start creates them. If the service has run before, this is another database: check --db.',
    )
  if ((await readDatabaseRows(db, dialect)).has(RESTORE_ROW))
    return createDiagnosis(
      'tables',
      'problem',
      'a restore into this database runs or did not finish',
      'Wait for it, or run verso restore again with the same backup.',
    )
  try {
    return (await areInternalTablesCurrent(db, dialect))
      ? createDiagnosis('tables', 'ok', 'the internal tables have the version of this release')
      : createDiagnosis(
          'tables',
          'ok',
          'the internal tables are of an earlier release: the next start migrates them',
        )
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return createDiagnosis(
      'tables',
      'problem',
      'a newer release of Verso has used this database',
      'Install that release or a later one, or use another database with --db.',
    )
  }
}

/** Compares the clock of the database with the time of the newest change. Undefined if there is none. */
export async function diagnoseStoredTime(db: Queryable, nowMs: number): Promise<Diagnosis | undefined> {
  const [row] = await db.all(`select at_ms from ${LOG_TABLE} order by seq desc limit 1`)
  if (row === undefined) return undefined
  const aheadMs = Number(row['at_ms']) - nowMs
  if (aheadMs <= MAX_CLOCK_OFFSET_MS)
    return createDiagnosis('stored time', 'ok', 'the newest change is not later than the clock')
  return createDiagnosis(
    'stored time',
    'warning',
    `the newest change is ${describeMs(aheadMs)} later than the clock of the database`,
    'Set the clock of the computer of the database. Until its time is later than the newest change, stored times go on from there.',
  )
}

/** `offsetMs`: the time of the database server minus the time of this computer. A slow answer makes it uncertain by `errorMs`. */
export function diagnoseClock(offsetMs: number, errorMs = 0): Diagnosis {
  const differenceMs = Math.max(0, Math.abs(offsetMs) - errorMs)
  if (differenceMs <= MAX_CLOCK_OFFSET_MS)
    return createDiagnosis('clock', 'ok', `differs from the database by ${describeMs(differenceMs)}`)
  const direction = offsetMs > 0 ? 'behind' : 'ahead of'
  return createDiagnosis(
    'clock',
    'warning',
    `the clock of this computer is ${describeMs(differenceMs)} ${direction} the clock of the database`,
    CLOCK_ADVICE,
  )
}

function describeMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`
}
