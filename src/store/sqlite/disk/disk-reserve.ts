// A file beside the database that occupies disk space. When the disk is full, the service gives this space back: then logins and deletes
// still work, and so do a start and the checkpoint of the WAL.
import { randomFillSync } from 'node:crypto'
import { rmSync, statfsSync, statSync, truncateSync } from 'node:fs'
import { open, statfs } from 'node:fs/promises'
import path from 'node:path'
import { PRIVATE_FILE_MODE } from '../../engine/private-files.js'
import { isFileMissing, isNotWritable } from '../../engine/file-errors.js'

/** On a small disk the reserve is smaller: it occupies at most this share. */
const MAX_DISK_SHARE = 1 / 8
/** A smaller reserve than this share of its size does not suffice. */
const MIN_RESERVE_SHARE = 1 / 2
/** Room that remains beside the reserve, for the WAL; as a share of the size of the reserve. */
const WAL_ROOM_SHARE = 1 / 4
/** SQLite soon grows an emptied WAL to about this size again. So this space does not count as free. */
const WAL_BYTES = 4 * 1024 * 1024
/** Without a reserve, the disk counts as full if it has less room than this. */
const MIN_ROOM_BYTES = 1024 * 1024
const CHUNK_BYTES = 1024 * 1024
/** A quota limits space that the file system reports as free. Then the reserve is not tried again at each check. */
const RETRY_MS = 10_000

/** `none`: there is room, and a running service makes the reserve. `scarce`: too little room to end the state of a full disk. */
export type ReserveState = 'kept' | 'none' | 'scarce' | 'full'

export interface ReserveInspection {
  readonly state: ReserveState
  /** The size of the reserve; 0 if there is none. */
  readonly bytes: number
  /** The service makes the reserve if this much space is free. */
  readonly neededBytes: number
}

/** Inspects the reserve of a database without changing it. */
export function inspectReserve(file: string, sizeBytes: number): ReserveInspection {
  const { bavail, bsize, blocks } = statfsSync(path.dirname(path.resolve(file)))
  const bytes = readSize(toReservePath(file))
  const size = limitSize(sizeBytes, blocks * bsize)
  const room = bytes + bavail * bsize
  const neededBytes = size * (1 + WAL_ROOM_SHARE) + Math.min(size, WAL_BYTES)
  const findState = (): ReserveState => {
    if (bytes >= size * MIN_RESERVE_SHARE) return 'kept'
    if (room >= neededBytes) return 'none'
    return room - size * WAL_ROOM_SHARE >= size * MIN_RESERVE_SHARE ? 'scarce' : 'full'
  }
  return { state: findState(), bytes, neededBytes }
}

function toReservePath(file: string): string {
  return `${file}.reserve`
}

function readSize(reservePath: string): number {
  return statSync(reservePath, { throwIfNoEntry: false })?.size ?? 0
}

function limitSize(sizeBytes: number, diskBytes: number): number {
  return Math.min(sizeBytes, diskBytes * MAX_DISK_SHARE)
}

export class DiskReserve {
  readonly #path: string
  readonly #folder: string
  /** How often this process has released a reserve. */
  #releases = 0
  #isImpossible = false
  #retryAtMs = 0

  constructor(
    file: string,
    /** 0 keeps no reserve. Undefined releases the reserve of another process if the disk is full, and never makes one. */
    private readonly sizeBytes: number | undefined,
  ) {
    this.#path = toReservePath(file)
    this.#folder = path.dirname(path.resolve(file))
    if (sizeBytes === 0) this.#remove()
  }

  /** True if this process makes and keeps the reserve. */
  get isKept(): boolean {
    return this.sizeBytes !== undefined && this.sizeBytes > 0 && !this.#isImpossible
  }

  /** True if the space of the reserve is for necessary writes only. */
  get isForNecessaryWrites(): boolean {
    return this.isKept || this.#releases > 0
  }

  /** False if an engine reports a full disk for another reason, such as a limit of its own. */
  isDiskFull(): boolean {
    const { bavail, bsize, blocks } = statfsSync(this.#folder)
    return bavail * bsize < Math.max(MIN_ROOM_BYTES, this.#limitSize(blocks * bsize) * WAL_ROOM_SHARE)
  }

  /** Returns true if this has made room. */
  release(): boolean {
    if (this.#readSize() === 0) return false
    this.#releases++
    try {
      // Some file systems need room to remove a file, but none to empty it.
      truncateSync(this.#path)
      rmSync(this.#path, { force: true })
      return true
    } catch (error) {
      if (isNotWritable(error) || isFileMissing(error)) return false
      throw error
    }
  }

  /**
   * Makes the reserve, or enlarges it, if the disk has room. Returns true if the reserve suffices. After a full disk, also counts the free
   * pages inside the database, which new records can use.
   */
  async keep(wasFull: boolean, countFreePageBytes: () => number): Promise<boolean> {
    const { bavail, bsize, blocks } = await statfs(this.#folder)
    const freeBytes = bavail * bsize
    if (!this.isKept) return freeBytes >= MIN_ROOM_BYTES
    const size = this.#limitSize(blocks * bsize)
    const current = this.#readSize()
    if (current >= size) return true
    const walRoom = size * WAL_ROOM_SHARE
    const possible = Math.min(size, Math.floor(current + freeBytes - walRoom))
    const isSufficient = (bytes: number) => bytes >= size * MIN_RESERVE_SHARE
    const hasRoom =
      !wasFull || current + freeBytes + countFreePageBytes() >= size + walRoom + Math.min(size, WAL_BYTES)
    const mayGrow = isSufficient(current) ? possible === size : isSufficient(possible) && hasRoom
    if (mayGrow && performance.now() >= this.#retryAtMs) await this.#grow(current, possible)
    return this.#isImpossible || isSufficient(this.#readSize())
  }

  /** Writes random bytes, because some file systems store no zeros. */
  async #grow(from: number, to: number): Promise<void> {
    const releases = this.#releases
    const chunk = Buffer.alloc(CHUNK_BYTES)
    try {
      const handle = await open(this.#path, 'a', PRIVATE_FILE_MODE)
      try {
        for (let bytes = from; bytes < to && this.#releases === releases; bytes += CHUNK_BYTES)
          await handle.appendFile(randomFillSync(chunk).subarray(0, to - bytes))
        await handle.datasync()
        // Another process may have enlarged it, too.
        if ((await handle.stat()).size > to) await handle.truncate(to)
      } finally {
        await handle.close()
      }
    } catch (error) {
      // In a read-only folder, only existing files can be written.
      this.#isImpossible = isNotWritable(error)
      // A quota limits the room, or another program has taken it.
      this.#retryAtMs = performance.now() + RETRY_MS
      this.#remove()
    }
  }

  #remove(): void {
    try {
      rmSync(this.#path, { force: true })
    } catch (error) {
      if (!isNotWritable(error)) throw error
    }
  }

  #limitSize(diskBytes: number): number {
    return limitSize(this.sizeBytes ?? 0, diskBytes)
  }

  #readSize(): number {
    return readSize(this.#path)
  }
}
