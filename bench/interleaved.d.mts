export function orderTurns(count: number, round: number): number[]
export function shareWarmUp(cells: { pid: number }[], index: number, seconds: number): number
export function listSteps(operations: string[], starts: number): { operations: string[]; start: number }[]
