import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { lowerPriority } from '../../src/cli/low-priority.js'

const { PRIORITY_LOW } = constants.priority

/** A process that has used its thread pool, so that all its threads run. */
async function startProcess(): Promise<number> {
  const script = `require('node:zlib').deflate('text', () => console.log('ready')); setInterval(() => undefined, 60_000)`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  await once(child.stdout, 'data')
  return child.pid ?? 0
}

/** The priorities of all threads. Elsewhere than on Linux a process has one priority. */
function listPriorities(pid: number): ReadonlySet<number> {
  if (process.platform !== 'linux') return new Set([getPriority(pid)])
  const threads = readdirSync(`/proc/${pid}/task`)
  return new Set(
    threads.map((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
    }),
  )
}

test('a process with low priority has it in all its threads', async () => {
  const pid = await startProcess()
  lowerPriority(pid)
  expect([...listPriorities(pid)]).toEqual([PRIORITY_LOW])
})

test('the mutant that changes the main thread only is caught', async () => {
  const pid = await startProcess()
  setPriority(pid, PRIORITY_LOW)
  expect(listPriorities(pid).size).toBe(process.platform === 'linux' ? 2 : 1)
})

test('a process that has ended is no error', async () => {
  const child = spawn(process.execPath, ['-e', ''], { stdio: 'ignore' })
  await once(child, 'exit')
  expect(() => {
    lowerPriority(child.pid ?? 0)
  }).not.toThrow()
})
