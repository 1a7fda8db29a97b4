/** Files of a source tree: path inside its folder → text. */
export type Tree = Map<string, string>
export interface ImportRules {
  readonly folder: string
  readonly order: readonly string[]
  readonly packageHome: Readonly<Record<string, string>>
}
export const ADMIN: ImportRules
export function findFaults(tree: Tree, rules?: ImportRules): string[]
export function readTree(root: string): Tree
