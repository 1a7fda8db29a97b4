// Scheduled backups. Other processes with low priority make and verify them, so the service keeps its memory and its event loop.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Logger } from 'pino'
import { summarizeError } from '../../errors.js'
import type { Schedule, ScheduleCall } from '../../service/background/schedule.js'
import { createScheduleOfService } from '../../service/background/schedule.js'
import type { App } from '../../service/context/app.js'
import type { ReadinessReport } from '../../service/context/readiness.js'
import { extendPurgeJournal } from '../../service/maintenance/repeated-purges.js'
import {
  BACKUP_SCHEDULE,
  readBackupStatus,
  storeVerifiedBackup,
  type BackupStatus,
} from '../../store/backup/backup-times.js'
import { listPurges } from '../../store/log/purges.js'
import { readDatabaseId } from '../../store/schema/database-id.js'
import { lowerPriority } from '../low-priority.js'
import { resolvePackageFile } from '../package-files.js'
import { BackupFolder } from './backup-folder.js'

const STATUS_INTERVAL_MS = 5_000
const MAX_ERROR_CHARACTERS = 2_000

export interface BackupPlan {
  readonly everyMs: number
  /** How many verified backups stay. */
  readonly keep: number
  readonly folder: string
  /** The URL of the database. */
  readonly db: string
  /** Permits to compare the restored records with the Log. */
  readonly models?: string | undefined
  /** The main file of the program. */
  readonly program?: string
}

export class ScheduledBackups {
  readonly schedule: Schedule
  readonly #folder: BackupFolder
  #app: App | undefined
  #folderProblem: string | undefined
  #folderCheck: Promise<void> | undefined
  #status: BackupStatus = { verifiedMs: undefined, hasFailed: false }

  constructor(private readonly plan: BackupPlan) {
    this.#folder = new BackupFolder(path.resolve(plan.folder))
    this.schedule = createScheduleOfService(BACKUP_SCHEDULE, plan.everyMs, async (call) => this.#run(call))
  }

  /** Reports the last backup to `/readyz`. The App of the last call is used. Returns a function that ends the reports. */
  attach(app: App): () => void {
    this.#app = app
    const remove = app.readiness.add(() => this.#report(app))
    const update = () => {
      // A check of a disk that does not respond occupies a thread of the process, so there is never a second one.
      if (this.#folderCheck) this.#reportFolder('its disk does not respond', app)
      this.#folderCheck ??= this.#checkFolder(app).finally(() => {
        this.#folderCheck = undefined
      })
      readBackupStatus(app.db.reader).then(
        (status) => {
          this.#status = status
        },
        // `/readyz` says itself that the database does not answer.
        () => undefined,
      )
    }
    update()
    const timer = setInterval(update, STATUS_INTERVAL_MS).unref()
    return () => {
      clearInterval(timer)
      remove()
    }
  }

  async #checkFolder(app: App): Promise<void> {
    const databaseId = await readDatabaseId(app.db.reader).catch(() => undefined)
    this.#reportFolder(await this.#folder.findProblem(databaseId), app)
  }

  #reportFolder(reason: string | undefined, { log }: App): void {
    if (reason !== undefined && reason !== this.#folderProblem)
      log.error({ reason }, 'the folder of --backup-folder cannot be used')
    this.#folderProblem = reason
  }

  #report({ clock }: App): ReadinessReport {
    const { verifiedMs, hasFailed } = this.#status
    const isLate = verifiedMs !== undefined && clock.now() - verifiedMs > 2 * this.plan.everyMs
    return {
      facts: { lastBackup: verifiedMs === undefined ? null : new Date(verifiedMs).toISOString() },
      warnings: [
        ...(this.#folderProblem === undefined
          ? []
          : [`The folder of --backup-folder cannot be used: ${this.#folderProblem}`]),
        ...(hasFailed ? ['The last scheduled backup failed. The log says why'] : []),
        ...(isLate ? ['The last verified backup is older than two intervals of --backup-every'] : []),
      ],
    }
  }

  async #run({ log, signal }: ScheduleCall): Promise<void> {
    const app = this.#app
    if (!app) throw new Error('the backups are not attached to the service')
    const takenMs = app.clock.now()
    const since = performance.now()
    const database = await readDatabaseId(app.db.reader)
    await this.#folder.prepare(database)
    const purges = await listPurges(app.db.reader)
    await extendPurgeJournal(
      this.#folder.path,
      purges.map((purge) => ({ database, ...purge })),
    )
    const unverified = this.#folder.nameUnverified(takenMs)
    try {
      await this.#runProgram(['backup', unverified], this.plan.db, signal)
      await this.#verify(unverified, signal)
    } finally {
      await this.#folder.pruneUnverified(unverified)
    }
    const file = await this.#folder.markVerified(unverified)
    const removed = await this.#removeOld(file, log)
    await app.db.transaction((tx) => storeVerifiedBackup(tx, takenMs))
    this.#status = { verifiedMs: takenMs, hasFailed: false }
    const seconds = Math.round((performance.now() - since) / 1_000)
    log.info(
      { file, bytes: (await stat(file)).size, seconds, removed },
      'a scheduled backup was made and verified',
    )
  }

  /** Restores the backup into a database of its own, which checks every row. */
  async #verify(file: string, signal: AbortSignal): Promise<void> {
    const folder = await this.#folder.createRestoreFolder()
    const { models } = this.plan
    try {
      const args = ['restore', file, '--moved', ...(models === undefined ? [] : ['--models', models])]
      await this.#runProgram(args, `sqlite:${path.join(folder, 'restored.db')}`, signal)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** A backup that cannot be deleted does not make the new one a failure. */
  async #removeOld(newest: string, log: Pick<Logger, 'error'>): Promise<number> {
    try {
      return (await this.#folder.prune(this.plan.keep, newest)).length
    } catch (error) {
      log.error(summarizeError(error), 'old backups could not be deleted')
      return 0
    }
  }

  /** The URL is in the environment: every user of the machine can read a command line. */
  async #runProgram(args: readonly string[], url: string, signal: AbortSignal): Promise<void> {
    const main = this.plan.program ?? resolvePackageFile('dist/cli/main.js')
    const child = spawn(process.execPath, [main, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, VERSO_DB: url },
    })
    const kill = () => child.kill()
    signal.addEventListener('abort', kill)
    let errors = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-MAX_ERROR_CHARACTERS)
    })
    try {
      if (signal.aborted) kill()
      const closed = once(child, 'close')
      if (child.pid !== undefined) lowerPriority(child.pid)
      const [code, killedBy] = (await closed) as [number | null, string | null]
      // The service stops, or another node makes the backup: this run has no result.
      signal.throwIfAborted()
      if (code !== 0) throw new Error(`verso ${args[0]} ended with ${killedBy ?? code}: ${errors.trim()}`)
    } finally {
      signal.removeEventListener('abort', kill)
    }
  }
}
