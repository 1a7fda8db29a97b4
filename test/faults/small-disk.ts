// A disk that is soon full, and may be made larger: a tmpfs, where mounting is allowed.
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

export interface SmallDisk {
  readonly folder: string
  grow(sizeMb: number): void
  /** From now on nothing can be written there, or again everything. Nobody may have a file open for writing. */
  setReadOnly(isReadOnly: boolean): void
  remove(): void
}

const removals: (() => void)[] = []

/** To be called at the end, whatever has failed. */
export function removeSmallDisks(): void {
  for (const remove of removals.splice(0)) remove()
}
// Whoever runs the tests was killed.
process.once('disconnect', removeSmallDisks)

/** Undefined where mounting is not possible. */
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
    // Lazily, so that it goes even if somebody still has a file of it open.
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
