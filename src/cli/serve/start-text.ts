// The text that a server prints when it listens: facts, and commands for the next steps.
const MAX_LINE_CHARS = 100
const MAX_NAMES = 5

export interface StartText {
  readonly facts: readonly (readonly [name: string, fact: string])[]
  readonly paragraphs?: readonly string[]
  readonly steps: readonly NextStep[]
}

export interface NextStep {
  readonly what: string
  /** Parts of one command; a line may break between them. */
  readonly parts: readonly string[]
}

export function formatStartText({ facts, paragraphs = [], steps }: StartText): string {
  return [
    '',
    ...facts.map(([name, fact]) => `  ${name.padEnd(9)}${fact}`),
    ...(paragraphs.length === 0 ? [] : ['', ...paragraphs.map((line) => `  ${line}`)]),
    ...steps.flatMap(({ what, parts }) => ['', `  ${what}:`, wrapCommand(parts)]),
    '',
    '  Stop it with Ctrl-C.',
    '',
    '',
  ].join('\n')
}

/** Puts the command on one line if it fits, else continues it with backslashes. */
function wrapCommand(parts: readonly string[]): string {
  const line = `    ${parts.join(' ')}`
  return line.length <= MAX_LINE_CHARS ? line : `    ${parts.join(' \\\n      ')}`
}

export function summarizeNames(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return more > 0 ? `${names.slice(0, MAX_NAMES).join(', ')} and ${more} more` : names.join(', ')
}
