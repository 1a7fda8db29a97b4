// Power cuts: the database is on an ext4 image. The service is stopped by SIGSTOP, and the image is copied: it has what a disk would have.
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  appendFileSync,
  writeFileSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findViolations, readStoredState, runControls } from '../checker.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { Recorder, writeDuring, type RecordedWrite } from '../recorder.js'
import { MAIN_PROGRAM, ServiceProcess } from '../service-process.js'

const CUTS = 60
const CONTROL_CUTS = 3
const WRITERS = 12
const LOAD_MS = 500
const IMAGE_MB = 256
/** Answers that are on their way at the moment of the cut arrive within this time. */
const SETTLE_MS = 50
/** Every fourth cut leaves garbage at the end of the WAL, as a torn write does. */
const GARBAGE_EVERY = 4
const MAX_GARBAGE_BYTES = 4_096
const UNMOUNT_ATTEMPTS = 100
const UNMOUNT_PAUSE_MS = 100

const CUT_BAR = `${CUTS} power cuts under load on SQLite: nothing acknowledged is lost, each start succeeds`
const root = fileURLToPath(new URL('../../..', import.meta.url))

export const powerLane: Lane = {
  name: 'power',
  description: `Copies of an ext4 image (commit=300) at random moments, garbage after every ${GARBAGE_EVERY}th WAL; a real start on each copy. Control: ${CONTROL_CUTS} cuts of a build with synchronous = off must lose something.`,
  minutes: 10,
  bars: [CUT_BAR],
  needs: 'root: it mounts images',
  findObstacle: () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-mount-'))
    try {
      const probe = new DiskImage(folder, 'probe')
      runProgram('umount', probe.mountPoint)
      return undefined
    } catch {
      return 'mounting images needs root and a kernel with loop devices'
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  run: async (options) => [await cutPower(options)],
}

interface CutResult {
  readonly acknowledged: number
  readonly violations: readonly string[]
}

async function cutPower(options: LaneOptions): Promise<PromiseRow> {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-power-'))
  try {
    const cuts = Math.ceil(CUTS * options.scale)
    const sound = await cutRepeatedly(folder, { cuts, program: MAIN_PROGRAM }, options)
    const control = await cutRepeatedly(
      folder,
      { cuts: CONTROL_CUTS, program: buildWithoutSync(folder) },
      options,
    )
    for (const violation of sound.violations.slice(0, 10)) options.log(violation)
    return {
      bar: CUT_BAR,
      measured: `${cuts} cuts, ${sound.acknowledged.toLocaleString('en')} acknowledged writes: ${sound.violations.length} violations; control without synchronous writes: ${control.violations.length} violations in ${CONTROL_CUTS} cuts`,
      isHeld:
        sound.violations.length === 0 &&
        control.violations.length > 0 &&
        sound.acknowledged > 0 &&
        cuts >= CUTS,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function cutRepeatedly(
  folder: string,
  { cuts, program }: { readonly cuts: number; readonly program: string },
  options: LaneOptions,
): Promise<CutResult> {
  const disk = new DiskImage(folder, 'disk')
  const service = await ServiceProcess.start({
    db: `sqlite:${path.join(disk.mountPoint, 'verso.db')}`,
    program,
  })
  const recorder = new Recorder()
  const violations: string[] = []
  try {
    for (let cut = 1; cut <= cuts; cut++) {
      let copy: DiskImage | undefined
      let writes: readonly RecordedWrite[] = []
      await writeDuring({ recorder, targets: [service.target], writers: WRITERS }, async () => {
        await sleep(LOAD_MS * (0.5 + Math.random()))
        service.signal('SIGSTOP')
        await sleep(SETTLE_MS)
        writes = recorder.writes.map((write) => ({ ...write }))
        copy = disk.copy('cut')
        service.signal('SIGCONT')
      })
      if (!copy) throw new Error('there is no copy')
      try {
        if (cut % GARBAGE_EVERY === 0) appendGarbage(path.join(copy.mountPoint, 'verso.db-wal'))
        violations.push(...(await checkCopy(copy, program, writes)))
      } finally {
        await copy.remove()
      }
      if (cut % 10 === 0)
        options.log(
          `${cut} cuts, ${recorder.count('acknowledged')} acknowledged writes, ${violations.length} violations`,
        )
    }
    return { acknowledged: recorder.count('acknowledged'), violations: [...recorder.faults, ...violations] }
  } finally {
    await service.close()
    await disk.remove()
  }
}

/** Starts the service on what the disk has. */
async function checkCopy(
  copy: DiskImage,
  program: string,
  writes: readonly RecordedWrite[],
): Promise<string[]> {
  let service: ServiceProcess
  try {
    service = await ServiceProcess.start({ db: `sqlite:${path.join(copy.mountPoint, 'verso.db')}`, program })
  } catch (error) {
    return [`no start after a cut: ${String(error).slice(0, 500)}`]
  }
  try {
    const state = await readStoredState(service.target)
    const { missed } = runControls(writes, state)
    return [...findViolations(writes, state), ...missed.map((name) => `the control was not caught: ${name}`)]
  } catch (error) {
    return [`unreadable after a cut: ${String(error).slice(0, 500)}`]
  } finally {
    await service.close()
  }
}

function appendGarbage(file: string): void {
  if (statSync(file, { throwIfNoEntry: false }))
    appendFileSync(file, randomBytes(1 + Math.floor(Math.random() * MAX_GARBAGE_BYTES)))
}

/** A copy of the build whose commits do not wait for the disk. */
function buildWithoutSync(folder: string): string {
  const copy = path.join(folder, 'control')
  mkdirSync(copy)
  cpSync(path.join(root, 'dist'), path.join(copy, 'dist'), { recursive: true })
  cpSync(path.join(root, 'package.json'), path.join(copy, 'package.json'))
  symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'))
  const file = path.join(copy, 'dist/store/sqlite/connection.js')
  const text = readFileSync(file, 'utf8')
  const broken = text
    .replace('synchronous = full', 'synchronous = off')
    .replace("'synchronous', 2", "'synchronous', 0")
  if (broken === text) throw new Error('the control could not be built')
  writeFileSync(file, broken)
  return path.join(copy, 'dist/cli/main.js')
}

/** An ext4 file system in a file. Without a flush, the file has nothing of what was written for five minutes. */
class DiskImage {
  readonly mountPoint: string

  constructor(
    private readonly folder: string,
    private readonly name: string,
    original?: string,
  ) {
    this.mountPoint = path.join(folder, name)
    if (original === undefined) {
      runProgram('truncate', '-s', `${IMAGE_MB}M`, this.#file)
      runProgram('mkfs.ext4', '-q', '-F', this.#file)
    } else runProgram('cp', '--sparse=always', original, this.#file)
    mkdirSync(this.mountPoint, { recursive: true })
    runProgram('mount', '-o', 'loop,commit=300', this.#file, this.mountPoint)
    process.once('exit', this.#unmountAtExit)
  }

  readonly #unmountAtExit = (): void => {
    spawnSync('umount', ['--lazy', this.mountPoint])
  }

  get #file(): string {
    return path.join(this.folder, `${this.name}.img`)
  }

  copy(name: string): DiskImage {
    return new DiskImage(this.folder, name, this.#file)
  }

  async remove(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        runProgram('umount', this.mountPoint)
        break
      } catch (error) {
        // The query workers of a killed service end a moment after it.
        if (attempt === UNMOUNT_ATTEMPTS) throw error
        await sleep(UNMOUNT_PAUSE_MS)
      }
    }
    process.off('exit', this.#unmountAtExit)
    rmSync(this.#file)
  }
}

function runProgram(program: string, ...args: readonly string[]): void {
  const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` }
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', env })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
}
