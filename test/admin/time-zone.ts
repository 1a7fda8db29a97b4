/** Runs something in a time zone. Other tests share the process, so it gets its zone back. */
export function inZone<T>(zone: string, run: () => T): T {
  const before = process.env['TZ']
  process.env['TZ'] = zone
  try {
    return run()
  } finally {
    if (before === undefined) delete process.env['TZ']
    else process.env['TZ'] = before
  }
}
