import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import * as logLines from '../../src/cli/serve/log-lines.js'
import { createMutantProgram, WITHOUT_ESCAPES } from '../mutants/program.js'

const { formatLogLines } = logLines

const TIME = Date.UTC(2026, 0, 31, 12, 45, 6)
const line = (entry: object) => `${JSON.stringify({ level: 30, time: TIME, pid: 7, ...entry })}\n`

describe('readable log lines', () => {
  test('a request is one line with time, level, message and fields', () => {
    const entry = {
      method: 'GET',
      route: '/ws/rest/:model',
      user: 'ada',
      status: 200,
      ms: 3.1,
      msg: 'request',
    }
    expect(formatLogLines(line(entry), false)).toBe(
      '12:45:06Z INFO  request method=GET route=/ws/rest/:model user=ada status=200 ms=3.1\n',
    )
  })

  test('an error is shown with its stack, one frame a line', () => {
    const err = { type: 'Error', message: 'broken', stack: 'Error: broken\n    at a.ts:1' }
    expect(formatLogLines(line({ level: 50, err, msg: 'a request failed' }), false)).toBe(
      '12:45:06Z ERROR a request failed\n    Error: broken\n        at a.ts:1\n',
    )
  })

  test('control characters that a client sent cannot reach the terminal', () => {
    const text = formatLogLines(
      line({ model: 'a\u001b[2Jb\u009b2J\u007f', name: 'two words', msg: 'x\u0007\ny\u2028z' }),
      false,
    )
    expect(text.replace(/\n$/, '')).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
    expect(text).toContain('x\\u0007\\u000ay\\u2028z')
    expect(text).toContain('name="two words"')
    expect(text.trimEnd().split('\n')).toHaveLength(1)
  })

  test('the mutant that prints control characters as they are is caught', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'verso-mutant-'))
    const file = path.join(createMutantProgram(folder, WITHOUT_ESCAPES), 'cli/serve/log-lines.js')
    const mutant = (await import(file)) as typeof logLines
    expect(mutant.formatLogLines(line({ msg: 'x\u0007' }), false)).toMatch(/\p{Cc}\n$/u)
    rmSync(folder, { recursive: true })
  })

  test('several lines are formatted one by one, and a line that is not JSON stays as it is', () => {
    expect(formatLogLines(`${line({ msg: 'a' })}plain text\n${line({ msg: 'b' })}`, false)).toBe(
      '12:45:06Z INFO  a\nplain text\n12:45:06Z INFO  b\n',
    )
  })

  test('colors are used only on request', () => {
    expect(formatLogLines(line({ level: 40, msg: 'careful' }), true)).toContain('\u001b[33mWARN \u001b[0m')
    expect(formatLogLines(line({ level: 40, msg: 'careful' }), false)).not.toContain('\u001b')
  })
})
