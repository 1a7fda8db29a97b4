// Names programs and systems from the `User-Agent` of a login, in the words that people use.

export interface Agent {
  readonly program: string
  /** Undefined for a program that does not say where it runs. */
  readonly system: string | undefined
}

/** The order matters: browsers name others that they are like. */
const PROGRAMS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
]

/** Undefined if there is nothing to read. Other programs are named by their first word: `curl/8.5` is `curl`. */
export function parseAgent(agent: string | null | undefined): Agent | undefined {
  if (agent === null || agent === undefined || agent.trim() === '') return undefined
  const find = (table: readonly (readonly [RegExp, string])[]) =>
    table.find(([pattern]) => pattern.test(agent))?.[1]
  const program = find(PROGRAMS) ?? /^[^\s/(;]+/.exec(agent.trim())?.[0]
  return program === undefined ? undefined : { program, system: find(SYSTEMS) }
}
