// Mutants of the metrics.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorKind } from '../../src/errors.js'
import { Metrics } from '../../src/http/metrics/metrics.js'

export class NoStaleMatches extends Metrics {
  override recordError(request: FastifyRequest, kind: ErrorKind | 'internal'): void {
    if (kind !== 'stale-match') super.recordError(request, kind)
  }
}

/** Clients choose the names in paths, so they could make any number of series. */
export class NamesFromPaths extends Metrics {
  protected override labelModel({ params }: FastifyRequest): string {
    return (params as { readonly model?: string }).model ?? ''
  }
}

export class LatencyInMilliseconds extends Metrics {
  override recordResponse(request: FastifyRequest, reply: FastifyReply): void {
    request.startMs = performance.now() - 1_000 * (performance.now() - request.startMs)
    super.recordResponse(request, reply)
  }
}
