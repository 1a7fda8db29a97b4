// A small disk that fills up soon and can grow: a tmpfs, if mounting is allowed.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

export interface SmallDisk {
  readonly folder: string
  grow(sizeMb: number): void
  /** Makes the disk read-only, or writable again. Nobody may have a file open for writing. */
  setReadOnly(isReadOnly: boolean): void
  remove(): void
}

const removals: (() => void)[] = []

/** Call at the end, even after a failure. */
export function removeSmallDisks(): void {
  for (const remove of removals.splice(0)) remove()
}
// Also if the test runner is killed.
process.once('disconnect', removeSmallDisks)

/** Undefined if mounting is not possible. */
export function mountSmallDisk(sizeMb: number, owner?: { uid: number; gid: number }): SmallDisk | undefined {
  if (process.platform !== 'linux') return undefined
  const scratch = mkdtempSync(path.join(tmpdir(), 'verso-small-disk-'))
  const folder = path.join(scratch, 'disk')
  mkdirSync(folder)
  if (owner) chmodSync(scratch, 0o755)
  const whose = owner ? `,uid=${owner.uid},gid=${owner.gid}` : ''
  const isMounted = runs('mount', '-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=700${whose}`, 'tmpfs', folder)
  let isThere = true
  const remove = () => {
    if (!isThere) return
    isThere = false
    // A lazy unmount works even if a file is still open.
    if (isMounted && !runs('umount', folder)) runs('umount', '--lazy', folder)
    rmSync(scratch, { recursive: true, force: true })
  }
  removals.push(remove)
  if (!isMounted) remove()
  const grow = (size: number) => {
    if (!runs('mount', '-o', `remount,size=${size}m`, folder))
      throw new Error('the disk could not be made larger')
  }
  const setReadOnly = (isReadOnly: boolean) => {
    if (!runs('mount', '-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, folder))
      throw new Error('the disk could not be mounted otherwise')
  }
  return isMounted ? { folder, grow, setReadOnly, remove } : undefined
}

function runs(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}
