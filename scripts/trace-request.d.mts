/** File inside dist, without its ending → function → calls. */
export type Trace = Map<string, Map<string, number>>
export interface CoveredScript {
  url: string
  functions: { functionName: string; ranges: { startOffset: number; endOffset: number; count: number }[] }[]
}
export function listCalls(scripts: CoveredScript[], dist: string): Trace
export function intersect(traces: Trace[]): Trace
export function buildTraceTable(traces: Record<string, Trace>): { headings: string[]; rows: string[][] }
export function findDifference(one: Trace, other: Trace): { left: string[]; right: string[] }
export function findNamedFiles(text: string): { plain: string[]; conflict: string[] }
export function findFaults(text: string, updates: Record<string, Trace>, stale: Trace): string[]
