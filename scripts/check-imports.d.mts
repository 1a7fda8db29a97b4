/** Files of a source tree: path inside src → text. */
export type Tree = Map<string, string>
export function findFaults(tree: Tree): string[]
export function readTree(root: string): Tree
