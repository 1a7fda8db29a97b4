// A file beside the database that exists while a process has the database open. If it remains, the last process has not stopped cleanly. It
// also says if the WAL has content: SQLite opens a database without its WAL as if the commits in it had never been made.
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../../errors.js'
import { isFileMissing, readErrorCode } from '../../engine/file-errors.js'
import { isProcessAlive, readProcessStart } from '../../engine/processes.js'
import { PRIVATE_FILE_MODE } from '../../engine/private-files.js'
import { inspectWal, readWalSize, type WalState } from './wal-file.js'

/** The content always has this size, so that it can be replaced on a full disk. */
const MARKER_BYTES = 256
/** Another process may be writing the WAL while it is read. */
const WAL_CHECKS = 3
const WAL_CHECK_PAUSE_MS = 100

interface MarkerContent {
  readonly pid: number
  /** The start of the process, because process ids are used again. Empty if the system does not tell it. */
  readonly start: string
  /** Identifies one open database, also if a process id is used again. */
  readonly token: string
  /** True if the WAL has content that must not get lost. */
  readonly hasWal: boolean
}

/** The databases that this process has open. */
const OPEN_MARKERS = new Set<OpenMarker>()

/** If a process exits without closing its databases, SQLite closes them at the very end and may remove the WAL. */
function expectEmptyWals(): void {
  for (const marker of OPEN_MARKERS) marker.expectEmptyWal()
}

export class OpenMarker {
  readonly #path: string
  readonly token = randomBytes(8).toString('hex')
  /** True if the marker says that the WAL has content. Only this class sets it. */
  hasWal = false

  private constructor(
    private readonly file: string,
    /** True if the process before has not stopped cleanly. */
    readonly isUnclean: boolean,
  ) {
    this.#path = toMarkerPath(file)
    if (OPEN_MARKERS.size === 0) process.on('exit', expectEmptyWals)
    OPEN_MARKERS.add(this)
  }

  /** Rejects a database whose file or WAL is missing or unreadable. Must run before SQLite opens or creates a file. */
  static async check(file: string): Promise<OpenMarker> {
    const { isUnclean, lost } = await inspectMarker(file)
    if (lost !== undefined) throw createRefusal(file, lost)
    return new OpenMarker(file, isUnclean)
  }

  /** If the work fails, the file of the marker stays, so that the next start checks the WAL as this one did. */
  async closeOnError<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.close(false)
      throw error
    }
  }

  /**
   * Must be called after the database was opened for writing, then periodically, and after a commit while `hasWal` is false. It does not fail:
   * a commit is stored already.
   */
  refresh(): void {
    ignoreFileErrors(() => {
      this.#refresh()
    })
  }

  #refresh(): void {
    const found = readMarker(this.#path)
    const walBytes = readWalSize(this.file)
    // The marker keeps its value while the WAL is missing or unreadable.
    const isReadable = walBytes > 0 && inspectWal(this.file, false) === 'readable'
    const isEmptied = walBytes === 0 && statSync(`${this.file}-wal`, { throwIfNoEntry: false }) !== undefined
    const hasWal = isReadable || (!isEmptied && (found?.hasWal ?? this.hasWal))
    this.hasWal = hasWal
    if (!found || !isInUse(found))
      this.#write({ pid: process.pid, start: readProcessStart(process.pid), token: this.token, hasWal })
    else if (found.hasWal !== hasWal) this.#write({ ...found, hasWal })
  }

  /** Must be called before the WAL is emptied, and `refresh` after it: otherwise a crash in between looks like a lost WAL. */
  expectEmptyWal(): void {
    const found = readMarker(this.#path)
    if (found?.hasWal) this.#write({ ...found, hasWal: false })
    this.hasWal = false
  }

  /** Must be called after SQLite has closed the database. Removes the marker after a clean stop of the process that made it. */
  close(isClean: boolean): void {
    OPEN_MARKERS.delete(this)
    if (OPEN_MARKERS.size === 0) process.off('exit', expectEmptyWals)
    if (!isClean || readWalSize(this.file) > 0) return
    if (readMarker(this.#path)?.token === this.token)
      ignoreFileErrors(() => rmSync(this.#path, { force: true }))
  }

  #write(content: MarkerContent): void {
    const bytes = Buffer.from(`${JSON.stringify(content).padEnd(MARKER_BYTES - 1)}\n`)
    ignoreFileErrors(() => {
      const descriptor = openMarker(this.#path)
      try {
        writeSync(descriptor, bytes, 0, bytes.length, 0)
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
    })
  }
}

export interface MarkerInspection {
  /** The process that has the database open, or had it open when it ended. Undefined if there is no marker. */
  readonly pid: number | undefined
  /** True if the process of the marker has ended without a clean stop. */
  readonly isUnclean: boolean
  /** The reason why a start would refuse the database: lost content. */
  readonly lost: string | undefined
}

/** Inspects a database and the files beside it without changing them. */
export async function inspectMarker(file: string): Promise<MarkerInspection> {
  const found = readMarker(toMarkerPath(file))
  const isUnclean = found !== undefined && !isInUse(found)
  const inspection = { pid: found?.pid, isUnclean }
  const size = statSync(file, { throwIfNoEntry: false })?.size
  if (size === undefined ? found !== undefined || readWalSize(file) > 0 : size === 0 && found?.hasWal)
    return {
      ...inspection,
      lost: 'the file is missing or empty, but files beside it show that it had content',
    }
  return { ...inspection, lost: isUnclean ? await findWalProblem(file, found.hasWal) : undefined }
}

function toMarkerPath(file: string): string {
  return `${file}.open`
}

/** Not truncated: a crash must not leave an empty marker. */
function openMarker(markerPath: string): number {
  try {
    return openSync(markerPath, 'r+')
  } catch (error) {
    if (!isFileMissing(error)) throw error
    return openSync(markerPath, 'w', PRIVATE_FILE_MODE)
  }
}

/** Undefined if there is no marker. A marker that cannot be read counts as one of an ended process. */
function readMarker(markerPath: string): MarkerContent | undefined {
  try {
    const content = JSON.parse(readFileSync(markerPath, 'utf8')) as Partial<MarkerContent>
    const { pid, start = '', token, hasWal } = content
    return { pid: Number(pid), start, token: String(token), hasWal: hasWal === true }
  } catch (error) {
    return isFileMissing(error) ? undefined : { pid: process.pid, start: '', token: '', hasWal: false }
  }
}

function isInUse({ pid, start, token }: MarkerContent): boolean {
  if ([...OPEN_MARKERS].some((marker) => marker.token === token)) return true
  // Our own process id without our token: an ended process had the same one, as in a container.
  if (pid === process.pid || !Number.isSafeInteger(pid) || pid <= 0 || !isProcessAlive(pid)) return false
  const currentStart = readProcessStart(pid)
  return start === '' || currentStart === '' || currentStart === start
}

async function findWalProblem(file: string, mustExist: boolean): Promise<string | undefined> {
  for (let checks = 1; ; checks++) {
    const problem = describeWalProblem(inspectWal(file), mustExist)
    if (problem === undefined || checks === WAL_CHECKS) return problem
    await sleep(WAL_CHECK_PAUSE_MS)
  }
}

function describeWalProblem(state: WalState, mustExist: boolean): string | undefined {
  if (state === 'damaged') return 'its -wal file is damaged: commits after the damage cannot be read'
  if (!mustExist || state === 'readable') return undefined
  return state === 'unreadable'
    ? 'the header of its -wal file is damaged: the last commits cannot be read'
    : 'its -wal file with the last commits is missing or empty'
}

function createRefusal(file: string, reason: string): ConfigError {
  return new ConfigError('The database cannot be opened', [
    `sqlite:${file}: ${reason}. Nothing was changed. Copy ${file} and the files beside it, then put the missing file back or restore a backup`,
    `to start without the lost data, delete ${file}.open, and ${file}-wal if it is there. Commits may be missing then, also old ones. ` +
      `If another program has opened the database since the service ended, such as sqlite3, nothing may be missing`,
  ])
}

/** A write must not fail because of the marker. If a file cannot be read or written now, the next refresh tries again. */
function ignoreFileErrors(change: () => void): void {
  try {
    change()
  } catch (error) {
    if (readErrorCode(error) === '') throw error
  }
}
