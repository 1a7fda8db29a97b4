// Shifts the clock of a process: SHIFT names a file with milliseconds, which SIGUSR2 reads again. Loaded with --import, or imported first.
import { readFileSync } from 'node:fs'

const file = process.env['SHIFT']
if (file !== undefined) {
  const RealDate = Date
  const read = () => Number(readFileSync(file, 'utf8'))
  let shiftMs = read()
  process.on('SIGUSR2', () => (shiftMs = read()))
  globalThis.Date = class extends RealDate {
    constructor(...values) {
      if (values.length === 0) super(RealDate.now() + shiftMs)
      else super(...values)
    }

    static now() {
      return RealDate.now() + shiftMs
    }
  }
}
