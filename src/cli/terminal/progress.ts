// How far a long command is: a bar that is drawn over on a terminal, nothing elsewhere.
const DRAWN_EVERY_MS = 100
const WIDTH = 24
const CLEAR = '\r\u001B[K'

interface Terminal {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export class Progress {
  #what = ''
  #total = 0
  #done = 0
  #count = 0
  #drawnMs = 0

  constructor(private readonly terminal: Terminal = process.stderr) {}

  /** Of how much, in whatever unit; what is counted beside it is shown as a number. */
  begin(what: string, total: number): void {
    this.#what = what
    this.#total = total
    this.#done = 0
    this.#count = 0
    this.#drawnMs = 0
  }

  advance(done: number, count: number): void {
    this.#done += done
    this.#count += count
    const now = performance.now()
    if (!this.terminal.isTTY || now - this.#drawnMs < DRAWN_EVERY_MS) return
    this.#drawnMs = now
    this.terminal.write(CLEAR + this.#bar())
  }

  /** Takes the bar away. */
  end(): void {
    if (this.terminal.isTTY) this.terminal.write(CLEAR)
  }

  #bar(): string {
    const part = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total)
    const full = Math.round(part * WIDTH)
    const bar = '█'.repeat(full) + '░'.repeat(WIDTH - full)
    return `${this.#what} ${bar} ${Math.floor(part * 100)} %  ${this.#count.toLocaleString('en')}`
  }
}
