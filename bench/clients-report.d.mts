/** One turn of a client. */
export interface Turn {
  perSecond: number
  cpuUs: number
  faults: [what: string, count: number][]
}
/** `<server> <kind>` → turns, one for each round. */
export type Cells = Record<string, Turn[]>
export interface TableText {
  headings: string[]
  rows: string[][]
}
export function buildClientsTable(results: Record<string, Cells>, clients: string[]): TableText
export function buildEqualityTable(results: Record<string, Cells>, clients: string[]): TableText
export function buildClientNotes(results: Record<string, Cells>): string[]
