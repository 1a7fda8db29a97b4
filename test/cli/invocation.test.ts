import { expect, test } from 'vitest'
import { spellCommands } from '../../src/cli/terminal/invocation.js'

const HINT = 'to create example models, run: verso init'

test.for([
  ['npx', { npm_lifecycle_event: 'npx', npm_lifecycle_script: 'verso' }, 'npx verso init'],
  [
    'a script of the checkout',
    { npm_lifecycle_event: 'verso', npm_lifecycle_script: 'node dist/cli/main.js' },
    'npm run verso -- init',
  ],
  [
    'npm start',
    { npm_lifecycle_event: 'start', npm_lifecycle_script: 'node dist/cli/main.js demo' },
    'npm run verso -- init',
  ],
  ['the program itself', {}, 'verso init'],
  [
    'a script of another project',
    { npm_lifecycle_event: 'start', npm_lifecycle_script: 'verso serve' },
    'verso init',
  ],
] as const)('a hint after a start by %s can be pasted', ([, environment, command]) => {
  expect(spellCommands(HINT, environment)).toBe(`to create example models, run: ${command}`)
})

test('only commands are replaced, not paths, packages and other words', () => {
  const text = 'verso-records, /etc/verso demo, verso.auth.User, verso serves, sqlite:data/verso.db'
  expect(spellCommands(text, { npm_lifecycle_event: 'npx', npm_lifecycle_script: 'verso' })).toBe(text)
})
