// Mistakes in programs that use the client. `npm run check` compiles them with one compiler; here another one does, and looser types
// must be noticed.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findFaults } from '../../scripts/check-client-types.mjs'
import { MISTAKES, PRELUDE } from './mistakes.mjs'

type Edit = (text: string) => string

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
  /** The last part is a mistake that such types allow. */
  const mutants: readonly (readonly [what: string, file: string, edit: Edit, mistake: string])[] = [
    [
      'any text is a field',
      `${TYPES}/path.ts`,
      (text) => text.replace(': P extends DefaultFields\n    ? never', ': P extends string\n    ? P'),
      "people.find({ fields: ['nme'] })",
    ],
    [
      'a filter may have any key',
      `${TYPES}/filter.ts`,
      (text) => text.replace('Keys extends GroupName ? never : RelatedPath<S, N, Keys>', 'Keys'),
      "people.find({ filter: { nme: 'Ada' } })",
    ],
    [
      'nothing is required in a create',
      'src/model/definition/record-types.ts',
      (text) => text.replace("      : 'required'\n", "      : 'optional'\n"),
      'companies.create({})',
    ],
    [
      'an inverse relation is part of a record',
      'src/model/definition/record-types.ts',
      (text) =>
        text.replace('BinaryField | SecretField | InverseField ? false : true', 'never ? false : true'),
      'companies.read(1).then((company) => company.people)',
    ],
    [
      'an update may return any field',
      `${TYPES}/write.ts`,
      (text) => text.replace(': UnknownField<N, K>', ': unknown'),
      "companies.update(1, () => ({ code: 'x', nme: 'x' }))",
    ],
  ]
  // One compilation for all of them: each allows mistakes of its own.
  let faults: readonly string[] = []
  beforeAll(() => {
    const edits: Record<string, Edit> = {}
    for (const [what, file, edit] of mutants) {
      const others = edits[file] ?? ((text) => text)
      edits[file] = (text) => {
        const [before, after] = [others(text), edit(others(text))]
        if (before === after) throw new Error(`the mutant changes nothing: ${what}`)
        return after
      }
    }
    faults = findFaults(edits)
  })

  test.for(mutants)('%s', ([, , , mistake]) => {
    expect(faults.filter((fault) => fault.startsWith(`${mistake}: 0 diagnostics`))).toHaveLength(1)
  })
})
