// Notices changes of the files of models and routes, and of the files that they import.
import { statSync, watch, type FSWatcher } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findModelFiles } from '../models/model-files.js'

/** An editor writes a file in several steps. The files must be unchanged for this long. */
const SETTLE_MS = 60
/** A file that changes all the time is loaded nevertheless. */
const MAX_SETTLE_MS = 2_000
/** Network mounts and the targets of symbolic links report no changes, so the files are also compared periodically. */
const POLL_MS = 1_000
/** A large folder is compared less often: without changes, comparing takes at most this share of the time. */
const MAX_POLL_SHARE = 0.02
/** While programs write other files beside the models, comparing takes at most this share of the time. */
const MAX_EVENT_SHARE = 0.2
const MIN_EVENT_GAP_MS = 20

export interface WatchHandlers {
  /** Gets the absolute paths of changed, new and removed files. The next call waits for its end. */
  readonly onChange: (files: readonly string[]) => Promise<void>
  /** Runs periodically while nothing changes. */
  readonly onQuiet: () => Promise<void>
}

export class ModelWatcher {
  readonly #roots: readonly string[]
  readonly #imports = new Set<string>()
  /** State of each file at the last comparison. */
  #stamps: ReadonlyMap<string, string>
  #folders: FSWatcher[] = []
  #handlers: WatchHandlers | undefined
  #timer: NodeJS.Timeout | undefined
  #isEventPending = false
  #scanMs = 0
  #running: Promise<void> | undefined
  #isClosed = false

  /** Remembers the files as they are now, so that no change after this is missed. */
  constructor(paths: readonly string[]) {
    this.#roots = paths.map((each) => path.resolve(each))
    this.#stamps = this.#readStamps()
  }

  /**
   * Adds files outside of the folder, which a load read that began at `loadedFromMs`. They stay watched if a later load fails before it reaches
   * them. A file that was written since then counts as changed: the load may have read the former text.
   */
  addImports(files: readonly string[], loadedFromMs: number): void {
    const added = files.filter((file) => !this.#stamps.has(file))
    for (const file of added) this.#imports.add(file)
    const stamps = added.map((file) => [file, readStamp(file, loadedFromMs)] as const)
    this.#stamps = new Map([...this.#stamps, ...stamps])
    if (added.length > 0 && this.#handlers) this.#watchFolders()
  }

  start(handlers: WatchHandlers): void {
    this.#handlers = handlers
    this.#watchFolders()
    this.#scheduleCheck(0)
  }

  /** Resolves when the running handler has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#closeFolders()
    await this.#running
  }

  #scheduleCheck(ms: number): void {
    if (this.#isClosed) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#isEventPending = false
      // A check that is running sees later changes when it ends.
      this.#running ??= this.#check().finally(() => {
        this.#running = undefined
      })
    }, ms)
  }

  async #check(): Promise<void> {
    const changed = this.#findChanges()
    if (changed.size === 0) await this.#handlers?.onQuiet()
    else {
      const deadlineMs = performance.now() + MAX_SETTLE_MS
      for (let more = changed; more.size > 0 && performance.now() < deadlineMs;) {
        await sleep(SETTLE_MS)
        more = this.#findChanges()
        for (const file of more) changed.add(file)
      }
      this.#watchFolders()
      if (!this.#isClosed) await this.#handlers?.onChange([...changed])
    }
    this.#scheduleCheck(changed.size > 0 ? 0 : Math.max(POLL_MS, this.#scanMs / MAX_POLL_SHARE))
  }

  #findChanges(): Set<string> {
    const startMs = performance.now()
    const [before, now] = [this.#stamps, this.#readStamps()]
    this.#stamps = now
    this.#scanMs = performance.now() - startMs
    return new Set([...before.keys(), ...now.keys()].filter((file) => before.get(file) !== now.get(file)))
  }

  #readStamps(): ReadonlyMap<string, string> {
    const files = this.#roots.flatMap((root) => findModelFiles(root).files)
    return new Map([...files, ...this.#imports].map((file) => [file, readStamp(file)]))
  }

  /** Watches the folders again after each change: a folder that was replaced has another watcher. */
  #watchFolders(): void {
    this.#closeFolders()
    if (this.#isClosed) return
    const folders = new Set([...this.#roots, ...[...this.#stamps.keys()].map((file) => path.dirname(file))])
    for (const folder of folders) {
      try {
        const watcher = watch(folder, { persistent: false }, () => {
          this.#onEvent()
        })
        // The periodic comparison goes on without it.
        watcher.on('error', () => {
          watcher.close()
        })
        this.#folders.push(watcher)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error)) throw error
      }
    }
  }

  #onEvent(): void {
    if (this.#running || this.#isEventPending) return
    this.#isEventPending = true
    this.#scheduleCheck(Math.max(MIN_EVENT_GAP_MS, this.#scanMs / MAX_EVENT_SHARE))
  }

  #closeFolders(): void {
    for (const watcher of this.#folders) watcher.close()
    this.#folders = []
  }
}

/** Returns a text that no other state of the file has; for a file that was written since `untilMs`, one that no file has. */
function readStamp(file: string, untilMs = Infinity): string {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats && stats.mtimeMs >= untilMs) return 'written during a load'
    return stats ? `${stats.mtimeMs} ${stats.ctimeMs} ${stats.size} ${stats.ino}` : 'missing'
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    return String(error.code)
  }
}
