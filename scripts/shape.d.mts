import type { Tree } from './check-imports.mjs'

/** Measurements of a source tree; each list names the places that it counts. */
export interface Shape {
  files: number
  lines: number
  filesByFolder: [folder: string, files: number][]
  linesByFolder: [folder: string, lines: number][]
  longSignatures: string[]
  weakMaps: string[]
  repeatedTypes: string[]
  repeatedFunctions: string[]
  longFiles: string[]
  smallFiles: string[]
  comments: number
  vagueComments: string[]
  vagueCommentPercent: number
}
export function measure(tree: Tree): Shape
export function findExcesses(shape: Shape): string[]
export function compareFolders(before: Shape, now: Shape): { headings: string[]; rows: string[][] }
