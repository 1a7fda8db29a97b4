// The metrics of one process as Prometheus text. They are measured only if the process has a metrics port, and outlive the Apps that it
// serves.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { ERROR_KINDS, type ErrorKind } from '../../errors.js'
import type { App } from '../../service/context/app.js'
import { measureLogLag } from '../../service/maintenance/log-lag.js'
import type { Gauges } from '../../store/engine/database.js'
import type { DatabaseMeasures } from '../../store/engine/measures.js'
import { hasMergeApplied } from '../request/preferences.js'
import { ReadinessCheck, SHUTTING_DOWN } from '../meta/readiness.js'
import { renderGroupSizes } from './group-sizes.js'
import { LatencyHistogram } from './latency.js'
import { CachedMeasure } from './cached-measure.js'
import { renderState } from './state-gauges.js'

/** More models would make too many series: each has its own histogram for each route. */
const MAX_LABELED_MODELS = 50
const MAX_LABELED_WEBHOOKS = 50
/** A scrape responds within a second, also if the database does not. */
const SCRAPE_LIMITS: ScrapeLimits = { cacheMs: 1_000, timeoutMs: 700 }

/** The App that is served now. */
export interface MetricSource {
  readonly app: App
  gauges(): Gauges
  isStopping(): boolean
}

export interface ScrapeLimits {
  /** How long the lag and the sizes are kept for the next scrape. */
  readonly cacheMs: number
  readonly timeoutMs: number
}

export interface BuildInfo {
  readonly version: string
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #latency = new LatencyHistogram(this.#registry)
  readonly #aborted: Counter
  readonly #errors: Counter
  readonly #merges: Counter
  readonly #shed: Counter
  #scraped: ScrapedSource | undefined
  #modelNames: ReadonlySet<string> = new Set()

  constructor(
    { version }: BuildInfo,
    private readonly limits = SCRAPE_LIMITS,
  ) {
    const registers = [this.#registry]
    this.#aborted = new Counter({
      name: 'verso_http_requests_aborted_total',
      help: 'Requests whose client disconnected before the response was sent completely.',
      registers,
    })
    this.#errors = new Counter({
      name: 'verso_http_errors_total',
      help: 'Error responses by kind: conflict is 409 for an outdated version, stale-match is 412.',
      labelNames: ['kind', 'model'],
      registers,
    })
    this.#merges = new Counter({
      name: 'verso_http_merges_total',
      help: 'Requests whose outdated updates were merged.',
      labelNames: ['model'],
      registers,
    })
    this.#shed = new Counter({
      name: 'verso_http_shed_total',
      help: 'Requests that were rejected with 503 before work began, because of overload.',
      registers,
    })
    // Rates need a first value.
    for (const kind of [...ERROR_KINDS, 'internal']) this.#errors.inc({ kind, model: '' }, 0)
    this.#merges.inc({ model: '' }, 0)
    const build = new Gauge({
      name: 'verso_build_info',
      help: 'Always 1. The labels are the versions of this process.',
      labelNames: ['version', 'node'],
      registers,
    })
    build.set({ version, node: process.version }, 1)
    collectDefaultMetrics({ register: this.#registry })
  }

  /** Sets the App whose state is read. Counters go on. */
  serve(source: MetricSource): void {
    const { models, storedModels } = source.app.catalog
    this.#modelNames = new Set(models.length > MAX_LABELED_MODELS ? [] : storedModels.map(({ name }) => name))
    this.#scraped = new ScrapedSource(source, this.limits)
  }

  recordResponse(request: FastifyRequest, reply: FastifyReply): void {
    if (!reply.raw.writableFinished) {
      this.#aborted.inc()
      return
    }
    const model = this.labelModel(request)
    this.#latency.add(request, reply, model)
    if (hasMergeApplied(reply)) this.#merges.inc({ model })
  }

  recordError(request: FastifyRequest, kind: ErrorKind | 'internal'): void {
    this.#errors.inc({ kind, model: this.labelModel(request) })
  }

  /** Counts a request that was refused because of overload. */
  recordShed(): void {
    this.#shed.inc()
  }

  async render(): Promise<string> {
    const [state, own] = await Promise.all([this.#scraped?.render(), this.#registry.metrics()])
    return `${own}${state ?? ''}`
  }

  /** Empty for names that are not in the catalog: clients choose the names in paths. */
  protected labelModel({ params }: FastifyRequest): string {
    const { model } = (params ?? {}) as { readonly model?: string }
    return model !== undefined && this.#modelNames.has(model) ? model : ''
  }
}

/** Reads the state of an App for a scrape. */
class ScrapedSource {
  readonly #readiness: ReadinessCheck
  readonly #lag: CachedMeasure<Awaited<ReturnType<typeof measureLogLag>>>
  readonly #measures: CachedMeasure<DatabaseMeasures>

  constructor(
    private readonly source: MetricSource,
    limits: ScrapeLimits,
  ) {
    const { app } = source
    this.#readiness = new ReadinessCheck(app)
    this.#lag = new CachedMeasure(() => measureLogLag(app, MAX_LABELED_WEBHOOKS), limits)
    this.#measures = new CachedMeasure(() => app.db.measure(), limits)
  }

  async render(): Promise<string> {
    const [readiness, lag, measures] = await Promise.all([
      this.source.isStopping() ? SHUTTING_DOWN : this.#readiness.find(),
      this.#lag.read(),
      this.#measures.read(),
    ])
    const work = this.source.gauges()
    const facts = this.source.app.readiness.collect()
    const state = await renderState({ work, readiness, lag, measures, facts })
    return `${renderGroupSizes(measures)}${state}`
  }
}
