// Draws a progress bar on a terminal; prints nothing elsewhere.
import { readFileSync } from 'node:fs'
import type { Writable } from 'node:stream'
import type * as prompts from '@clack/prompts'

/** Exit code of a command that Ctrl-C or a signal ended. */
const EXIT_INTERRUPTED = 130
const BAR_CHARS = 24

export interface ProgressTerminal extends Writable {
  readonly isTTY?: boolean
  /** Some terminals do not know their width, which is 0 then. The library would draw one character per line. */
  readonly columns?: number
}

/** Creates a bar. Loads the library that draws it only if it can be drawn. */
export async function createProgressBar(terminal: ProgressTerminal = process.stderr): Promise<ProgressBar> {
  const canDraw = terminal.isTTY === true && (terminal.columns ?? 0) > 0 && !isBackgroundJob()
  return new ProgressBar(terminal, canDraw ? await import('@clack/prompts') : undefined)
}

export class ProgressBar {
  #bar: prompts.SpinnerResult | prompts.ProgressResult | undefined
  #label = ''
  #total = 0
  #done = 0
  #count = 0

  constructor(
    private readonly terminal: ProgressTerminal,
    private readonly library: Pick<typeof prompts, 'progress' | 'spinner'> | undefined,
  ) {}

  /** Starts a bar of `total` units, or a spinner if the total is unknown (0). Replaces the bar before it. */
  begin(label: string, total: number): void {
    this.end()
    ;[this.#label, this.#total, this.#done, this.#count] = [label, total, 0, 0]
    if (!this.library) return
    const options: prompts.SpinnerOptions = {
      output: this.terminal,
      withGuide: false,
      indicator: 'timer',
      cancelMessage: `${label}: interrupted`,
      errorMessage: `${label}: failed`,
      // The library handles the signals that would otherwise end the process.
      onCancel: () => process.exit(process.exitCode ?? EXIT_INTERRUPTED),
    }
    this.#bar =
      total === 0
        ? this.library.spinner(options)
        : this.library.progress({ ...options, max: total, size: BAR_CHARS })
    const listeners = process.listeners('unhandledRejection')
    this.#bar.start(this.#describe())
    // The library would swallow unhandled rejections. Without its listener they end the process, as elsewhere.
    for (const listener of process.listeners('unhandledRejection'))
      if (!listeners.includes(listener)) process.off('unhandledRejection', listener)
    process.on('exit', reportInterruption)
  }

  /** Adds to the units that are done, and to a count that is shown as a number beside the bar. */
  advance(done: number, count: number): void {
    this.#done += done
    this.#count += count
    if (!this.#bar) return
    if ('advance' in this.#bar) this.#bar.advance(done, this.#describe())
    else this.#bar.message(this.#describe())
  }

  /** Clears the bar. */
  end(): void {
    this.#bar?.clear()
    this.#bar = undefined
    process.off('exit', reportInterruption)
  }

  #describe(): string {
    const percent = Math.floor(Math.min(1, this.#done / this.#total) * 100)
    return `${this.#label} ${this.#total === 0 ? '' : `${percent} %  `}${this.#count.toLocaleString('en')}`
  }
}

/** The library ends the process with exit code 0 on Ctrl-C, although the command is not complete. */
function reportInterruption(code: number): void {
  if (code === 0) process.exitCode = EXIT_INTERRUPTED
}

/** The library reads keys from the terminal; the system stops a background job that does. Detected on Linux only. */
function isBackgroundJob(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    // The fields after the name of the program: state, parent, group, session, terminal, group in the foreground.
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return foreground !== '-1' && group !== foreground
  } catch {
    // Not Linux.
    return false
  }
}
