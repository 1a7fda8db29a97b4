/** How often a fault is repeated: `npm run test:faults` repeats it as often as the promise says, `npm run test:all` less often. */
export function chooseRepeats<T>(promised: T, fewer: T): T {
  return process.env['FAULT_REPEATS'] === 'promised' ? promised : fewer
}
