export interface BenchRequest {
  method: string
  path: string
  body?: unknown
}
export function serializeRequest(
  request: BenchRequest,
  headers: Record<string, string>,
  writeHeaders?: Record<string, string>,
): Buffer
