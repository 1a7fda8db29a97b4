// Lists the files of a path that may hold models. Files in a folder are classified by their content, not just by their
// location.
import { readdirSync, readFileSync, statSync, type Dirent } from 'node:fs'
import path from 'node:path'
import { MAX_XML_BYTES } from '../../formats/domain-xml/xml.js'
import { describeFileError, explainFileError } from '../file-error.js'
import type { SkippedFile, SkipKind } from './skipped-files.js'

const MODEL_EXTENSIONS = ['.ts', '.mts', '.js', '.mjs', '.json', '.xml']
/** Folders of dependencies, build output and tests. Folders that start with a dot are skipped too. */
const SKIPPED_FOLDERS = new Set(['node_modules', 'build', 'dist', 'target', 'test'])
/** Files that often lie beside models. */
const NON_MODEL_FILES: readonly (readonly [SkipKind, RegExp])[] = [
  ['json', /^(package|package-lock|tsconfig.*)\.json$/],
  ['types', /\.d\.m?ts$/],
]
/** Larger files in a folder are skipped. */
export const MAX_MODEL_BYTES = MAX_XML_BYTES
const MAX_ENTRIES = 100_000

export interface ModelFileList {
  /** Absolute paths, sorted. */
  readonly files: readonly string[]
  readonly skipped: readonly SkippedFile[]
  readonly errors: readonly string[]
}

/** Lists the named file, or the candidate files below the named folder. */
export function findModelFiles(modelsPath: string, maxEntries = MAX_ENTRIES): ModelFileList {
  try {
    return listModelFiles(modelsPath, maxEntries)
  } catch (error) {
    const message = describeFileError(error)
    if (message === undefined) throw error
    return { files: [], skipped: [], errors: [message] }
  }
}

function listModelFiles(modelsPath: string, maxEntries: number): ModelFileList {
  const root = path.resolve(modelsPath)
  const stats = statSync(root, { throwIfNoEntry: false })
  const fail = (what: string): ModelFileList => ({
    files: [],
    skipped: [],
    errors: [`${toDisplayPath(root)}: ${what}`],
  })
  if (!stats) return fail('the file or folder does not exist; to create example models, run: verso init')
  if (stats.isDirectory()) return searchFolder(root, maxEntries)
  if (hasModelExtension(root)) return { files: [root], skipped: [], errors: [] }
  return fail(`the name of a model file must end in ${MODEL_EXTENSIONS.join(', ')}`)
}

function searchFolder(root: string, maxEntries: number): ModelFileList {
  const files: string[] = []
  const skipped: SkippedFile[] = []
  const errors: string[] = []
  const folders = [root]
  let entries = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of readEntries(folder, errors)) {
      const full = path.join(folder, entry.name)
      const found = classifyEntry(entry, full)
      if (found === 'folder') folders.push(full)
      else if (found === 'file') files.push(full)
      else if (found) skipped.push({ ...found, location: toDisplayPath(full) })
      if (++entries <= maxEntries) continue
      const what = `the folder contains more than ${maxEntries} files and folders; name the folder with the models`
      return { files: [], skipped: [], errors: [`${toDisplayPath(root)}: ${what}`] }
    }
  }
  const byPath = (one: SkippedFile, other: SkippedFile) => (one.location < other.location ? -1 : 1)
  return { files: files.sort(), skipped: skipped.sort(byPath), errors }
}

/** An unreadable folder is an error, because it may hold models. */
function readEntries(folder: string, errors: string[]): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    const reason = explainFileError(error)
    if (reason === undefined) throw error
    errors.push(`${toDisplayPath(folder)}: ${reason}`)
    return []
  }
}

/** Returns undefined for entries that are not worth mentioning. */
function classifyEntry(entry: Dirent, full: string): 'file' | 'folder' | SkipReason | undefined {
  const { name } = entry
  if (entry.isDirectory())
    return SKIPPED_FOLDERS.has(name) || name.startsWith('.') ? { kind: 'folder' } : 'folder'
  if (name.startsWith('.')) return undefined
  if (entry.isSymbolicLink()) {
    const target = readLinkTarget(full)
    // Linked folders are not followed, because links may form a cycle.
    if (target === 'folder') return { kind: 'folder', detail: 'a symbolic link' }
    if (target === undefined) return hasModelExtension(name) ? { kind: 'link' } : undefined
  } else if (!entry.isFile()) return undefined
  if (!hasModelExtension(name)) return undefined
  const other = NON_MODEL_FILES.find(([, pattern]) => pattern.test(name))
  return other ? { kind: other[0] } : 'file'
}

/** Follows a link, because a folder that Kubernetes mounts holds links to files. */
function readLinkTarget(link: string): 'file' | 'folder' | undefined {
  try {
    const stats = statSync(link)
    return stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined
    throw error
  }
}

function hasModelExtension(file: string): boolean {
  return MODEL_EXTENSIONS.includes(path.extname(file))
}

/** Returns undefined if a file in a folder is too large to be a model. */
export function readModelFile({ file, isExplicit }: ModelFile): Buffer | undefined {
  return !isExplicit && statSync(file).size > MAX_MODEL_BYTES ? undefined : readFileSync(file)
}

/** A model file to read, with a callback for its errors. */
export interface ModelFile {
  readonly file: string
  readonly displayPath: string
  /** The path was given on the command line; the file was not found in a folder. */
  readonly isExplicit: boolean
  readonly reportError: (what: string) => void
}

/** Reason why a file was skipped. */
export type SkipReason = Omit<SkippedFile, 'location'>

/** Exported values of a model file, or the reason why it was skipped. */
export type ModelFileExports = readonly unknown[] | SkipReason

/** Returns the path relative to the working directory if that is shorter. */
export function toDisplayPath(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return relative !== '' && relative.length < file.length ? relative : file
}
