/** The flags of one section. */
export interface SectionFlags {
  seconds: number
  rounds: number
  starts: number
  rows: number
  connections: number
  only: string[]
  servers: string[]
  clients: string[]
  before?: string
}
export function readOptions(args: string[]): { sideBySide?: SectionFlags; clients?: SectionFlags }
