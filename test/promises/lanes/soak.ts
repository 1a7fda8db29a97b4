// Steady load on one node: what grows?
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../../postgres.js'
import { checkWrites } from '../checked.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { countServerErrors, describeAnswers, mean } from '../numbers.js'
import { Recorder, writeDuring } from '../recorder.js'
import { ServiceProcess, type MemorySample } from '../service-process.js'

/** Longer than other lanes: what grows slowly does not show in ten minutes. */
const BAR_MINUTES = 20
const SAMPLE_MS = 15_000
const WARM_UP_SHARE = 0.25
const WRITERS = 4
const MAX_HEAP_GROWTH_BYTES_PER_MINUTE = 50_000
const MB = 1024 ** 2

export const soakSqliteLane = createSoakLane('soak-sqlite', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-promise-'))
  const file = path.join(folder, 'verso.db')
  return {
    db: `sqlite:${file}`,
    readWalBytes: () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size,
    remove: async () => {
      rmSync(folder, { recursive: true, force: true })
      return Promise.resolve()
    },
  }
})

export const soakPostgresLane = createSoakLane('soak-postgres', async () => {
  const postgres = await startPostgres({ durable: true })
  return { db: postgres.url, readWalBytes: () => undefined, remove: () => postgres.stop() }
})

interface SoakedDatabase {
  readonly db: string
  readonly readWalBytes: () => number | undefined
  readonly remove: () => Promise<void>
}

interface SoakSample extends MemorySample {
  readonly minute: number
  readonly walBytes: number | undefined
}

function createSoakLane(name: string, open: () => Promise<SoakedDatabase>): Lane {
  const bars = {
    heap: `${name}: ${BAR_MINUTES} minutes of load, heap after garbage collection flat (at most 0.05 MB a minute)`,
    files: `${name}: file descriptors and WAL flat`,
    answers: `${name}: no 5xx, nothing lost`,
  }
  return {
    name,
    description: `${WRITERS} writers without pause on one node, for ${BAR_MINUTES} minutes. A full garbage collection before each sample.`,
    minutes: BAR_MINUTES + 1,
    bars: Object.values(bars),
    needs: undefined,
    findObstacle: () => undefined,
    run: async (options) => {
      const database = await open()
      try {
        return await soak(database, bars, options)
      } finally {
        await database.remove()
      }
    },
  }
}

async function soak(
  { db, readWalBytes }: SoakedDatabase,
  bars: { readonly heap: string; readonly files: string; readonly answers: string },
  options: LaneOptions,
): Promise<PromiseRow[]> {
  const service = await ServiceProcess.start({ db, measuresMemory: true })
  const recorder = new Recorder()
  const samples: SoakSample[] = []
  const minutes = BAR_MINUTES * options.scale
  try {
    const startMs = performance.now()
    const readMinute = () => (performance.now() - startMs) / 60_000
    await writeDuring({ recorder, targets: [service.target], writers: WRITERS }, async () => {
      while (readMinute() < minutes) {
        await sleep(Math.min(SAMPLE_MS, Math.max(0, minutes - readMinute()) * 60_000 + 1))
        const sample = { minute: readMinute(), walBytes: readWalBytes(), ...(await service.measure()) }
        samples.push(sample)
        options.log(
          `${sample.minute.toFixed(1)} min: heap ${(sample.heapUsed / MB).toFixed(2)} MB, RSS ${(sample.rss / MB).toFixed(0)} MB, ` +
            `${sample.descriptors} descriptors, delay p99.9 ${sample.delayP999Ms.toFixed(0)} ms`,
        )
      }
    })
    const warm = samples.filter(({ minute }) => minute >= minutes * WARM_UP_SHARE)
    const heapSlope = computeSlope(warm, ({ heapUsed }) => heapUsed)
    const rssSlope = computeSlope(warm, ({ rss }) => rss)
    const halves = [warm.slice(0, warm.length >> 1), warm.slice(warm.length >> 1)] as const
    const [before, after] = halves.map((half) => mean(half.map(({ descriptors }) => descriptors)))
    const walMax = halves.map((half) => Math.max(0, ...half.map(({ walBytes = 0 }) => walBytes)))
    const isLong = minutes >= BAR_MINUTES
    const lasted = `${minutes.toFixed(1)} minutes${isLong ? '' : ` of ${BAR_MINUTES}`}`
    const wal =
      readWalBytes() === undefined
        ? ''
        : `, WAL at most ${walMax.map((bytes) => (bytes / MB).toFixed(1)).join(' then ')} MB`
    const [walBefore = 0, walAfter = 0] = walMax
    const delay = Math.max(...warm.map(({ delayP999Ms }) => delayP999Ms))
    const errors = countServerErrors(recorder.answers)
    const written = await checkWrites(
      { recorder, target: service.target, bar: bars.answers, faults: lasted },
      options,
    )
    return [
      {
        bar: bars.heap,
        measured: `${lasted}: heap ${(heapSlope / MB).toFixed(3)} MB a minute, RSS ${(rssSlope / MB).toFixed(2)} MB a minute, event-loop delay p99.9 at most ${delay.toFixed(0)} ms`,
        isHeld: heapSlope <= MAX_HEAP_GROWTH_BYTES_PER_MINUTE && isLong,
      },
      {
        bar: bars.files,
        measured: `${lasted}: ${(before ?? 0).toFixed(1)} then ${(after ?? 0).toFixed(1)} file descriptors on average${wal}`,
        isHeld: (after ?? 0) <= (before ?? 0) + 1 && walAfter <= walBefore * 1.25 && isLong,
      },
      {
        ...written,
        measured: `${written.measured}; ${describeAnswers(recorder.answers)}`,
        isHeld: written.isHeld && errors === 0 && isLong,
      },
    ]
  } finally {
    await service.close()
  }
}

/** The slope of the regression line, per minute. */
function computeSlope(samples: readonly SoakSample[], read: (sample: SoakSample) => number): number {
  const [x, y] = [mean(samples.map(({ minute }) => minute)), mean(samples.map(read))]
  const covariance = samples.reduce((sum, sample) => sum + (sample.minute - x) * (read(sample) - y), 0)
  const variance = samples.reduce((sum, { minute }) => sum + (minute - x) ** 2, 0)
  return variance === 0 ? 0 : covariance / variance
}
