// Runs one postgres and outlives the tests just long enough to end it: a test run that is killed leaves no server behind.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'

const { command, args, options, folders } = JSON.parse(process.argv[2])
const postgres = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] })
let isAbandoned = false

postgres.on('error', (error) => {
  process.stderr.write(`${command}: ${error.message}\n`)
  process.exitCode = 1
})
postgres.on('spawn', () => process.send({ pid: postgres.pid }))

// Without the tests there is no reader, and a postgres that cannot write its log would not end.
process.stderr.on('error', () => undefined)
postgres.stderr.on('data', (chunk) => process.stderr.write(chunk))

// Every backend holds the same stderr: it closes when the last of them is gone, which may be long after the postmaster.
postgres.on('close', () => {
  if (isAbandoned)
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  process.exit()
})
process.on('message', (signal) => postgres.kill(signal))
process.on('disconnect', () => {
  isAbandoned = true
  postgres.kill('SIGQUIT')
})
