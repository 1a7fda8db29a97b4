// Names the program in messages as the user can run it: `verso` is not on the path of somebody who started it through npm.
const COMMAND_WORDS = [
  'demo',
  'dev',
  'serve',
  'user',
  'role',
  'key',
  'schema',
  'history',
  'verify',
  'doctor',
  'models',
  'hooks',
  'types',
  'init',
  'export',
  'import',
  'backup',
  'restore',
  'prove',
] as const
const MENTION = new RegExp(`(?<![\\w/.-])verso (?=(${COMMAND_WORDS.join('|')}|help)\\b)`, 'g')

/** The first word of a command. program.ts has an entry for each. */
export type CommandWord = (typeof COMMAND_WORDS)[number]

/** Replaces `verso serve` with `npx verso serve` or `npm run verso -- serve`, depending on how this process was started. */
export function spellCommands(text: string, environment: NodeJS.ProcessEnv = process.env): string {
  const program = findProgram(environment)
  return program === 'verso' ? text : text.replaceAll(MENTION, `${program} `)
}

function findProgram({
  npm_lifecycle_event: event,
  npm_lifecycle_script: script = '',
}: NodeJS.ProcessEnv): string {
  if (event === 'npx' && /\bverso\b/.test(script)) return 'npx verso'
  const isOwnScript = (event === 'verso' || event === 'start') && script.includes('dist/cli/main.js')
  return isOwnScript ? 'npm run verso --' : 'verso'
}
