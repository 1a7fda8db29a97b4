export function findFaults(edits?: Readonly<Record<string, (text: string) => string>>): string[]
