// SIGTERM under load: each request that was sent before the listener closed gets its answer.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { checkWrites } from '../checked.js'
import type { Lane, LaneOptions, PromiseRow } from '../lane.js'
import { countServerErrors, describeAnswers } from '../numbers.js'
import { Recorder, writeDuring } from '../recorder.js'
import { ServiceProcess } from '../service-process.js'

const STOPS = 50
const WRITERS = 12
const DRAIN_MS = 1_000
const LOAD_MS = 400

const RESET_BAR = `${STOPS} stops under load: no request that was sent before the listener closed is lost, no 5xx`
const WRITES_BAR = `${STOPS} stops under load: nothing lost or stored twice`

export const stopsLane: Lane = {
  name: 'stops',
  description: `SIGTERM under load of 12 writers on SQLite with --drain ${DRAIN_MS / 1_000}s. The writers go on until the process has ended; a refused connection is no loss.`,
  minutes: 6,
  bars: [RESET_BAR, WRITES_BAR],
  needs: undefined,
  findObstacle: () => undefined,
  run: async (options) => stopUnderLoad(options),
}

async function stopUnderLoad(options: LaneOptions): Promise<PromiseRow[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'verso-promise-'))
  const flags = ['--drain', `${DRAIN_MS}ms`]
  const service = await ServiceProcess.start({ db: `sqlite:${path.join(folder, 'verso.db')}`, flags })
  const recorder = new Recorder()
  const stops = Math.ceil(STOPS * options.scale)
  let wrongExits = 0
  try {
    for (let stop = 1; stop <= stops; stop++) {
      await writeDuring({ recorder, targets: [service.target], writers: WRITERS }, async () => {
        await sleep(LOAD_MS)
        if ((await service.end('SIGTERM')) !== 0) wrongExits++
      })
      await service.start()
      if (stop % 10 === 0) options.log(`${stop} stops: ${describeAnswers(recorder.answers)}`)
    }
    const lost = recorder.answers.get('lost') ?? 0
    const errors = countServerErrors(recorder.answers)
    const faults = `${stops} stops`
    const writes = await checkWrites({ recorder, target: service.target, bar: WRITES_BAR, faults }, options)
    return [
      {
        bar: RESET_BAR,
        measured: `${stops} stops: ${lost} requests without an answer, ${errors} × 5xx, ${wrongExits} exit codes other than 0`,
        isHeld: lost === 0 && errors === 0 && wrongExits === 0 && stops >= STOPS,
      },
      { ...writes, isHeld: writes.isHeld && stops >= STOPS },
    ]
  } finally {
    await service.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
