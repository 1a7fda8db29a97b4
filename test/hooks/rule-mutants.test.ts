// Every rule of hooks has a mutant of the built service that its scenario catches.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, test } from 'vitest'
import { createTestVerso } from '../../src/index.js'
import { HOOK_MISTAKES, type HookMistake } from '../mutants/hook-code.js'
import { createMutantProgram } from '../mutants/program.js'
import { openSetting, SCENARIOS } from './rule-scenarios.js'

async function findFault(name: HookMistake, create: typeof createTestVerso): Promise<string | undefined> {
  const setting = await openSetting(create)
  try {
    return await SCENARIOS[name](setting)
  } finally {
    await setting.verso.close()
  }
}

test.each(Object.keys(HOOK_MISTAKES) as HookMistake[])('it is caught that %s', async (name) => {
  expect(await findFault(name, createTestVerso)).toBeUndefined()
  const dist = createMutantProgram(inject('runFolder'), HOOK_MISTAKES[name])
  const mutant = (await import(
    /* @vite-ignore */ pathToFileURL(path.join(dist, 'index.js')).href
  )) as typeof import('../../src/index.js')
  expect(await findFault(name, mutant.createTestVerso)).toEqual(expect.any(String))
})
