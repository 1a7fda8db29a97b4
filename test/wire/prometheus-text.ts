// A strict parser of the text format of Prometheus, version 0.0.4. It throws at the first line that the format does not allow.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y
// Prometheus reads numbers regardless of case: prom-client writes Nan.
const NUMBER = /^(?:[+-]?Inf|NaN|[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)$/i
const TYPES = ['counter', 'gauge', 'histogram', 'summary', 'untyped']

export class MetricsText {
  readonly samples: Sample[] = []
  readonly #types = new Map<string, string>()
  readonly #helps = new Set<string>()
  readonly #ended = new Set<string>()

  constructor(text: string) {
    if (!text.endsWith('\n')) throw new Error('the last line has no end')
    let current = ''
    for (const line of text.split('\n')) {
      if (line === '') continue
      const name = line.startsWith('#') ? this.#readComment(line) : this.#readSample(line)
      if (name !== current && this.#ended.has(name)) throw new Error(`the lines of ${name} are not together`)
      if (name !== current && current !== '') this.#ended.add(current)
      current = name
    }
    this.#checkHistograms()
  }

  /** The samples with this name and at least these labels. */
  find(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    return this.samples.filter(
      (each) =>
        each.name === name && Object.entries(labels).every(([label, value]) => each.labels[label] === value),
    )
  }

  /** The sum of the samples with this name and at least these labels; undefined without any. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const found = this.find(name, labels)
    return found.length === 0 ? undefined : found.reduce((total, { value }) => total + value, 0)
  }

  #readComment(line: string): string {
    const [, kind, name = '', rest = ''] =
      new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`).exec(line) ?? throwFor(line)
    if (kind === 'HELP') {
      if (this.#helps.has(name)) throw new Error(`${name} has two helps`)
      this.#helps.add(name)
    } else {
      if (this.#types.has(name) || !TYPES.includes(rest)) throw new Error(`a wrong type: ${line}`)
      this.#types.set(name, rest)
    }
    return name
  }

  #readSample(line: string): string {
    const [, name = '', , labelText = '', value = ''] =
      new RegExp(`^(${NAME})(\\{(.*)\\})? (\\S+)$`).exec(line) ?? throwFor(line)
    if (!NUMBER.test(value)) throw new Error(`a wrong number: ${line}`)
    const labels = readLabels(labelText, line)
    const sample = { name, labels, value: Number(value.replace('Inf', 'Infinity')) }
    const key = (each: Sample) => JSON.stringify([each.name, Object.entries(each.labels).sort()])
    if (this.samples.some((each) => each.name === name && key(each) === key(sample)))
      throw new Error(`twice: ${line}`)
    this.samples.push(sample)
    const base = name.replace(/_(bucket|sum|count)$/, '')
    const family = ['histogram', 'summary'].includes(this.#types.get(base) ?? '') ? base : name
    if (!this.#types.has(family) || !this.#helps.has(family)) throw new Error(`no type or help: ${line}`)
    return family
  }

  #checkHistograms(): void {
    for (const [name, type] of this.#types) {
      if (type !== 'histogram') continue
      const last = new Map<string, Sample>()
      for (const sample of this.find(`${name}_bucket`)) {
        const { le = '', ...labels } = sample.labels
        const series = JSON.stringify(Object.entries(labels).sort())
        const before = last.get(series)
        const bound = (text: string) => Number(text.replace('+Inf', 'Infinity'))
        if (before && bound(before.labels['le'] ?? '') >= bound(le))
          throw new Error(`${name}: buckets out of order`)
        if (before && before.value > sample.value) throw new Error(`${name}: the buckets are not cumulative`)
        last.set(series, sample)
      }
      for (const { labels, value } of last.values()) {
        const { le, ...others } = labels
        const counts = this.find(`${name}_count`, others)
        if (le !== '+Inf' || counts.length !== 1 || counts[0]?.value !== value)
          throw new Error(`${name}: the last bucket is not the count`)
      }
    }
  }
}

function readLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const [, name = '', value = ''] = LABEL.exec(text) ?? throwFor(line)
    if (name in labels) throw new Error(`a label twice: ${line}`)
    labels[name] = value
  }
  return labels
}

function throwFor(line: string): never {
  throw new Error(`not in the format: ${line}`)
}
