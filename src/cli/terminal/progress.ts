// Draws a progress bar on a terminal; prints nothing elsewhere.
const REDRAW_INTERVAL_MS = 100
const BAR_CHARS = 24
const CLEAR_LINE = '\r\u001B[K'

interface Terminal {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export class ProgressBar {
  #label = ''
  #total = 0
  #done = 0
  #count = 0
  #drawnMs = 0

  constructor(private readonly terminal: Terminal = process.stderr) {}

  /** Starts a bar of `total` units. `advance` also adds to a count, which is shown as a number beside the bar. */
  begin(label: string, total: number): void {
    this.#label = label
    this.#total = total
    this.#done = 0
    this.#count = 0
    this.#drawnMs = 0
  }

  advance(done: number, count: number): void {
    this.#done += done
    this.#count += count
    const now = performance.now()
    if (!this.terminal.isTTY || now - this.#drawnMs < REDRAW_INTERVAL_MS) return
    this.#drawnMs = now
    this.terminal.write(CLEAR_LINE + this.#formatBar())
  }

  /** Clears the bar. */
  end(): void {
    if (this.terminal.isTTY) this.terminal.write(CLEAR_LINE)
  }

  #formatBar(): string {
    const part = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total)
    const full = Math.round(part * BAR_CHARS)
    const bar = '█'.repeat(full) + '░'.repeat(BAR_CHARS - full)
    return `${this.#label} ${bar} ${Math.floor(part * 100)} %  ${this.#count.toLocaleString('en')}`
  }
}
