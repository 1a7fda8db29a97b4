import { chmodSync } from 'node:fs'

/** Modes do not bind the administrator of a machine. `scratch` is the folder of the test, which others have to pass through. */
export async function asNobody<T>(scratch: string, work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work()
  chmodSync(scratch, 0o755)
  process.seteuid?.(65534)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}
