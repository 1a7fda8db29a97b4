import type { Logger } from 'pino'
import type { Caller } from '../service/rights/caller.js'

export interface AnsweredRequest {
  readonly requestId: string
  readonly method: string
  /** The route, not the address: what stands behind `?` stays out of the log. */
  readonly route: string | undefined
  readonly model: string | undefined
  readonly status: number
  /** When it arrived, as `performance.now()` told it. */
  readonly startMs: number
  readonly caller: Caller | null
  readonly address: string | undefined
}

export type LogRequest = (answered: AnsweredRequest) => void

/** One line for each request. */
export function makeRequestLog(log: Logger): LogRequest {
  // The fields of this line are fixed and hold no secret: looking for one in each would be the dearest part of a read.
  const requests = log.child({}, { redact: [] })
  return ({ requestId, method, route, model, status, startMs, caller, address }) => {
    const actor = caller?.actor
    const ms = Math.round((performance.now() - startMs) * 10) / 10
    const [user, key] = [actor?.username, actor?.keyId]
    requests.info(
      { requestId, method, route, model: model?.slice(0, 100), status, ms, user, key, address },
      'request',
    )
  }
}
