// The systemd unit, and a way to run a program under its limits on a machine whose init process is not systemd.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'

export const DEPLOY = path.join(import.meta.dirname, '../../deploy')
export const UNIT = path.join(DEPLOY, 'verso.service')
export const NOBODY = 65_534
const FAMILY_NUMBERS: Readonly<Record<string, number>> = { AF_UNIX: 1, AF_INET: 2, AF_INET6: 10 }

export function readDeployFile(name: string): string {
  return readFileSync(path.join(DEPLOY, name), 'utf8')
}

/** Returns the values of a setting, in the order of the file. */
export function readUnitValues(name: string): string[] {
  return [...readDeployFile('verso.service').matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(
    ([, value = '']) => value,
  )
}

export function readUnitValue(name: string): string {
  const [value, ...more] = readUnitValues(name)
  if (value === undefined || more.length > 0) throw new Error(`the unit must have ${name}= once`)
  return value
}

/** Returns the words before a command that run it with the user, the umask, the address families and the system calls of the unit. */
export function limitAsUnit(
  options: { readonly deniesExecutableMemory?: boolean } = {},
): [string, ...string[]] {
  const limits = {
    uid: process.getuid?.() === 0 ? NOBODY : null,
    umask: Number.parseInt(readUnitValue('UMask'), 8),
    syscalls: [...listPermittedCalls()],
    families: readUnitValue('RestrictAddressFamilies')
      .split(' ')
      .map((family) => findFamily(family)),
    deniesExecutableMemory: options.deniesExecutableMemory ?? false,
  }
  return ['python3', path.join(import.meta.dirname, 'run-as-unit.py'), JSON.stringify(limits)]
}

function findFamily(name: string): number {
  const number = FAMILY_NUMBERS[name]
  if (number === undefined) throw new Error(`${name} is not an address family that this test knows`)
  return number
}

/** The first list permits system calls; lists that begin with ~ take some of them away, as systemd.exec(5) says. */
function listPermittedCalls(): Set<string> {
  const permitted = new Set(expandCalls('@default'))
  for (const value of readUnitValues('SystemCallFilter')) {
    const names = value.replace('~', '').split(' ').flatMap(expandCalls)
    for (const name of names) {
      if (value.startsWith('~')) permitted.delete(name)
      else permitted.add(name)
    }
  }
  return permitted
}

function expandCalls(name: string): string[] {
  if (!name.startsWith('@')) return [name]
  const printed = execFileSync('systemd-analyze', ['syscall-filter', name], { encoding: 'utf8' })
  const members = printed
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  return members.flatMap(expandCalls)
}
