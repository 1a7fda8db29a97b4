import { chmodSync } from 'node:fs'

/** Runs `work` as an unprivileged user, because root ignores file modes. That user must be able to enter `scratch`. */
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
