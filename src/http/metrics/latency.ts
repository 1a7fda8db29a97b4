// Counts requests by their latency. A histogram of prom-client builds a key of all labels for each observation, which costs more than the
// rest of the measurement; this one finds its series by the route, which is the same object for each request.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Histogram, type Registry } from 'prom-client'

const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const
const NAME = 'verso_http_request_duration_seconds'
const HELP =
  'Time from the arrival of the headers until the response was sent completely, including slow clients and waiting feed requests.'
/** The route of a request whose path no route matches. */
const NO_ROUTE = 'none'

type LatencyLabel = 'method' | 'route' | 'status' | 'model'

interface SeriesLabels {
  readonly method: string
  readonly route: string
  /** `2xx` */
  readonly status: string
  /** Empty for a path without a model, and if models are no label. */
  readonly model: string
}

/** A line of the output. */
interface LatencyValue {
  readonly metricName: string
  readonly labels: { readonly le?: number | string }
  readonly sharedLabels: SeriesLabels
  readonly value: number
}

/** The latencies of requests with the same labels. */
class LatencySeries {
  sumS = 0
  /** The last count is of requests beyond all buckets. */
  readonly counts = new Array<number>(BUCKETS_S.length + 1).fill(0)

  constructor(readonly labels: SeriesLabels) {}

  add(seconds: number): void {
    let bucket = 0
    while (bucket < BUCKETS_S.length && seconds > (BUCKETS_S[bucket] ?? Infinity)) bucket++
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.sumS += seconds
  }

  *list(): Generator<LatencyValue> {
    const { labels: sharedLabels } = this
    let count = 0
    for (const [bucket, own] of this.counts.entries()) {
      count += own
      const le = BUCKETS_S[bucket] ?? '+Inf'
      yield { metricName: `${NAME}_bucket`, sharedLabels, labels: { le }, value: count }
    }
    yield { metricName: `${NAME}_sum`, sharedLabels, labels: {}, value: this.sumS }
    yield { metricName: `${NAME}_count`, sharedLabels, labels: {}, value: count }
  }
}

/** The series of one route, by method, model and class of status. */
type RouteSeries = Map<string, Map<string, (LatencySeries | undefined)[]>>

export class LatencyHistogram extends Histogram<LatencyLabel> {
  readonly #routes = new Map<string, RouteSeries>()

  constructor(registry: Registry) {
    const labelNames = ['method', 'route', 'status', 'model'] as const
    super({ name: NAME, help: HELP, buckets: [...BUCKETS_S], labelNames, registers: [registry] })
  }

  /** Counts a request whose response was sent. `model` is a name of the catalog, or empty: clients choose the names in paths. */
  add(request: FastifyRequest, { statusCode }: FastifyReply, model: string): void {
    const route = request.routeOptions.url ?? NO_ROUTE
    const series = this.#find(route, request.method, model)
    const statusClass = Math.trunc(statusCode / 100)
    const found = (series[statusClass] ??= new LatencySeries({
      method: request.method,
      route,
      status: `${statusClass}xx`,
      model,
    }))
    found.add((performance.now() - request.startMs) / 1_000)
  }

  #find(route: string, method: string, model: string): (LatencySeries | undefined)[] {
    let byMethod = this.#routes.get(route)
    if (!byMethod) {
      byMethod = new Map()
      this.#routes.set(route, byMethod)
    }
    let byModel = byMethod.get(method)
    if (!byModel) {
      byModel = new Map()
      byMethod.set(method, byModel)
    }
    let byStatus = byModel.get(model)
    if (!byStatus) {
      byStatus = []
      byModel.set(model, byStatus)
    }
    return byStatus
  }

  /** Replaces the function that `get` and the registry call, which the types of prom-client do not have. */
  async getForPromString() {
    return { name: NAME, help: HELP, type: 'histogram', aggregator: 'sum', values: [...this.#list()] }
  }

  *#list(): Generator<LatencyValue> {
    for (const byMethod of this.#routes.values())
      for (const byModel of byMethod.values())
        for (const byStatus of byModel.values())
          for (const series of byStatus) if (series) yield* series.list()
  }
}
