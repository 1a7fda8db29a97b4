// The end of a lane with writers: the comparison, and the control that proves that the comparison is not blind.
import { findViolations, readStoredState, runControls } from './checker.js'
import type { LaneOptions, PromiseRow } from './lane.js'
import type { Recorder } from './recorder.js'
import type { HttpTarget } from './service-process.js'

const SHOWN_VIOLATIONS = 10

/** Rows for the writes of a lane: nothing lost, stored twice or stored although it was refused; and the control. */
export async function checkWrites(
  { recorder, target, bar, faults }: { recorder: Recorder; target: HttpTarget; bar: string; faults: string },
  { log }: LaneOptions,
): Promise<PromiseRow> {
  const { writes } = recorder
  const state = await readStoredState(target)
  const violations = [...recorder.faults, ...findViolations(writes, state)]
  for (const violation of violations.slice(0, SHOWN_VIOLATIONS)) log(violation)
  const { caught, tried, missed } = runControls(writes, state)
  for (const name of missed) log(`the control was not caught: ${name}`)
  const count = (number: number) => number.toLocaleString('en')
  const acknowledged = recorder.count('acknowledged')
  return {
    bar,
    measured:
      `${faults}; ${count(acknowledged)} acknowledged, ${count(recorder.count('refused'))} refused and ` +
      `${count(recorder.count('in-doubt'))} undecided writes: ${violations.length} violations; control: ${caught} of ${tried} defects found`,
    isHeld: violations.length === 0 && caught === tried && acknowledged > 0,
  }
}
