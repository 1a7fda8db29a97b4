// Starts peers that cannot choose a free port themselves, and polls them until they respond.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { getFolder, registerChild, stopChild } from '../processes.mjs'

const PATIENCE_MS = 120_000
const PAUSE_MS = 100

export async function findFreePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** Starts a server and returns the child when `url` responds. */
export async function startAndWait(url, command, words, options = {}) {
  const child = registerChild(spawn(command, words, { cwd: getFolder(), ...options, stdio: 'ignore' }))
  const failure = once(child, 'error').then(([error]) => Promise.reject(error))
  failure.catch(() => undefined)
  try {
    await waitUntilAnswering(url, child, failure)
    return child
  } catch (error) {
    await stopChild(child)
    throw error
  }
}

async function waitUntilAnswering(url, child, failure) {
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
