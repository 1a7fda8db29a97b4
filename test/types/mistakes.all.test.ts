// Mistakes in programs that use the client. `npm run check` compiles them with one compiler; here another one does, and looser types
// must be noticed.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findFaults } from '../../scripts/check-client-types.mjs'
import { MISTAKES, PRELUDE } from './mistakes.mjs'

const ROOT = path.join(import.meta.dirname, '../..')
const folder = mkdtempSync(path.join(tmpdir(), 'verso-mistakes-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

test('the compiler of TypeScript 7 has one diagnostic for each mistake, too', () => {
  const test = path.join(ROOT, 'test')
  const prelude = PRELUDE.replaceAll("'../../", `'${ROOT}/`).replaceAll("'../", `'${test}/`)
  writeFileSync(
    path.join(folder, 'mistakes.ts'),
    prelude + MISTAKES.map(([statement]) => `void ${statement}\n`).join(''),
  )
  const compilerOptions = { types: ['node'], typeRoots: [`${ROOT}/node_modules/@types`] }
  writeFileSync(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: path.join(ROOT, 'tsconfig.json'), compilerOptions, include: ['mistakes.ts'] }),
  )
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  const compiler = path.join(ROOT, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(compiler, ['--pretty', 'false', '-p', folder], {
    encoding: 'utf8',
    cwd: folder,
  })
  const lines = [...stdout.matchAll(/^mistakes\.ts\((\d+),/gm)].map(([, line]) => Number(line))
  const first = PRELUDE.split('\n').length
  expect(lines, stdout).toEqual(MISTAKES.map((_, index) => first + index))
})

describe('the check notices types that are too loose', () => {
  const TYPES = 'src/client/types'
  const mutants: readonly (readonly [what: string, file: string, (text: string) => string])[] = [
    [
      'any text is a field',
      `${TYPES}/path.ts`,
      (text) => text.replace(': P extends DefaultFields\n    ? never', ': P extends string\n    ? P'),
    ],
    [
      'a filter may have any key',
      `${TYPES}/filter.ts`,
      (text) => text.replace('Keys extends GroupName ? never : RelatedPath<S, N, Keys>', 'Keys'),
    ],
    [
      'nothing is required in a create',
      'src/model/definition/record-types.ts',
      (text) => text.replace("      : 'required'\n", "      : 'optional'\n"),
    ],
    [
      'an update may return any field',
      `${TYPES}/write.ts`,
      (text) => text.replace(': UnknownField<N, K>', ': unknown'),
    ],
    [
      'an inverse relation is part of a record',
      'src/model/definition/record-types.ts',
      (text) =>
        text.replace('BinaryField | SecretField | InverseField ? false : true', 'never ? false : true'),
    ],
  ]
  test.for(mutants)('%s', ([, file, edit]) => {
    expect(findFaults({ [file]: edit }).length).toBeGreaterThan(0)
  })
})
