// npm run check: runs every check:* script of package.json, as many at once as there are processors, and prints what each of them printed.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'

const root = path.join(import.meta.dirname, '..')
const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
const waiting = Object.keys(scripts).filter((name) => name.startsWith('check:'))
const failed = []

function run(name) {
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '--silent', name], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (printed += text))
    child.on('error', (error) => (printed += `${error.message}\n`))
    child.on('close', (code) => {
      if (code !== 0) failed.push(name)
      process.stdout.write(`${code === 0 ? 'passed' : 'FAILED'}: ${name}\n${printed}`)
      resolve()
    })
  })
}

async function runInTurn() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await run(name)
}

await Promise.all(Array.from({ length: availableParallelism() }, runInTurn))
if (failed.length > 0) {
  console.error(`These checks failed: ${failed.join(', ')}`)
  process.exitCode = 1
}
