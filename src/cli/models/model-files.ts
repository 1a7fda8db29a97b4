// The files of a place that may hold models. What lies below a folder is not taken for a model because it is there.
import { readdirSync, readFileSync, statSync, type Dirent } from 'node:fs'
import path from 'node:path'
import { MAX_XML_BYTES } from '../../formats/domain-xml/xml.js'
import { fileFault, fileWords } from '../file-error.js'
import type { PassedOver, PassedOverKind } from './skipped-files.js'

const EXTENSIONS = ['.ts', '.mts', '.js', '.mjs', '.json', '.xml']
/** Besides those that start with a dot: dependencies, products of a build, and tests. */
const SKIPPED = new Set(['node_modules', 'build', 'dist', 'target', 'test'])
/** Files that stand beside models for other reasons. */
const OTHERS: readonly (readonly [PassedOverKind, RegExp])[] = [
  ['json', /^(package|package-lock|tsconfig.*)\.json$/],
  ['types', /\.d\.m?ts$/],
]
/** Below a folder no greater file is read. */
export const MAX_MODEL_BYTES = MAX_XML_BYTES
const MAX_ENTRIES = 100_000

export interface ModelFiles {
  /** Absolute, in the order of their paths. */
  readonly files: readonly string[]
  readonly passedOver: readonly PassedOver[]
  readonly faults: readonly string[]
}

/** A file that is named by itself, or those below a folder. */
export function findModelFiles(place: string, maxEntries = MAX_ENTRIES): ModelFiles {
  try {
    return filesAt(place, maxEntries)
  } catch (error) {
    const fault = fileFault(error)
    if (fault === undefined) throw error
    return { files: [], passedOver: [], faults: [fault] }
  }
}

function filesAt(place: string, maxEntries: number): ModelFiles {
  const root = path.resolve(place)
  const stats = statSync(root, { throwIfNoEntry: false })
  const fault = (what: string): ModelFiles => ({
    ...{ files: [], passedOver: [] },
    faults: [`${shownAs(root)}: ${what}`],
  })
  if (!stats) return fault('there is no such file or folder; to get a starter folder, run: verso init')
  if (stats.isDirectory()) return searchFolder(root, maxEntries)
  if (hasModelEnding(root)) return { files: [root], passedOver: [], faults: [] }
  return fault(`a model file ends in ${EXTENSIONS.join(', ')}`)
}

function searchFolder(root: string, maxEntries: number): ModelFiles {
  const files: string[] = []
  const passedOver: PassedOver[] = []
  const faults: string[] = []
  const folders = [root]
  let entries = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(folder, faults)) {
      const full = path.join(folder, entry.name)
      const found = kindOf(entry, full)
      if (found === 'folder') folders.push(full)
      else if (found === 'file') files.push(full)
      else if (found) passedOver.push({ ...found, location: shownAs(full) })
      if (++entries <= maxEntries) continue
      const what = `more than ${maxEntries} files and folders lie below it: name the folder with the models`
      return { files: [], passedOver: [], faults: [`${shownAs(root)}: ${what}`] }
    }
  }
  const byPlace = (one: PassedOver, other: PassedOver) => (one.location < other.location ? -1 : 1)
  return { files: files.sort(), passedOver: passedOver.sort(byPlace), faults }
}

/** A folder that cannot be read may hold models: the service does not start without them. */
function entriesOf(folder: string, faults: string[]): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    const words = fileWords(error)
    if (words === undefined) throw error
    faults.push(`${shownAs(folder)}: ${words}`)
    return []
  }
}

/** Undefined for what nobody takes for a model. */
function kindOf(entry: Dirent, full: string): 'file' | 'folder' | Reason | undefined {
  const { name } = entry
  if (entry.isDirectory()) return SKIPPED.has(name) || name.startsWith('.') ? { kind: 'folder' } : 'folder'
  if (name.startsWith('.')) return undefined
  if (entry.isSymbolicLink()) {
    const target = targetKind(full)
    // Links may lead in circles.
    if (target === 'folder') return { kind: 'folder', detail: 'a link' }
    if (target === undefined) return hasModelEnding(name) ? { kind: 'link' } : undefined
  } else if (!entry.isFile()) return undefined
  if (!hasModelEnding(name)) return undefined
  const other = OTHERS.find(([, pattern]) => pattern.test(name))
  return other ? { kind: other[0] } : 'file'
}

/** A folder that Kubernetes mounts holds links to files. */
function targetKind(link: string): 'file' | 'folder' | undefined {
  try {
    const stats = statSync(link)
    return stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

function hasModelEnding(file: string): boolean {
  return EXTENSIONS.includes(path.extname(file))
}

/** Undefined where a file below a folder is too large to be a model. */
export function readModelFile({ file, isNamed }: ModelFile): Buffer | undefined {
  return !isNamed && statSync(file).size > MAX_MODEL_BYTES ? undefined : readFileSync(file)
}

/** A file to read, and the place to report its faults. */
export interface ModelFile {
  readonly file: string
  readonly shown: string
  /** Named by itself, and not found below a folder. */
  readonly isNamed: boolean
  readonly fault: (what: string) => void
}

/** Why a file was passed over. */
export type Reason = Omit<PassedOver, 'location'>

/** The contents of a file, or the reason that it was passed over. */
export type Exported = readonly unknown[] | Reason

/** As people would write it: relative where that is shorter. */
export function shownAs(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return relative !== '' && relative.length < file.length ? relative : file
}
