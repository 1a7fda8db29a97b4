// Starts peers that cannot choose a free port themselves, and polls them until they respond.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { folder, own, stop } from '../processes.mjs'

const PATIENCE_MS = 120_000
const PAUSE_MS = 100

export async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** Starts a server and returns the child when `url` responds. */
export async function startAt(url, command, words, options = {}) {
  const child = own(spawn(command, words, { cwd: folder(), ...options, stdio: 'ignore' }))
  const failure = once(child, 'error').then(([error]) => Promise.reject(error))
  failure.catch(() => undefined)
  try {
    await untilAnswering(url, child, failure)
    return child
  } catch (error) {
    await stop(child)
    throw error
  }
}

async function untilAnswering(url, child, failure) {
  const late = performance.now() + PATIENCE_MS
  for (;;) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode} before it answered`)
    if (performance.now() > late) throw new Error(`it did not answer within ${PATIENCE_MS / 1_000} s`)
    const response = await fetch(url).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.ok) return
    await Promise.race([failure, new Promise((resolve) => setTimeout(resolve, PAUSE_MS))])
  }
}
