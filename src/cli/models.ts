// Model files → definitions, with every fault of every file at once.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { createJiti, type Jiti } from 'jiti'
import { StartFaults } from '../errors.js'
import { Catalog, type Source } from '../model/catalog.js'
import { defineModel, isDefinedModel } from '../model/definition.js'
import { describeJsonFault } from './json-fault.js'

const CODE = ['.ts', '.mts', '.js', '.mjs']
const EXTENSIONS = [...CODE, '.json']
/** Files that a folder of models may have for other reasons. */
const OTHERS = /^(package|package-lock|tsconfig.*)\.json$|\.d\.m?ts$/

export interface Loaded {
  readonly sources: readonly Source[]
  readonly faults: readonly string[]
}

/** The models of a file or a folder; refuses with the faults of all of them. */
export async function loadModels(place: string): Promise<readonly Source[]> {
  const { sources, faults } = await loadCatalogSources(place)
  const all = [...faults, ...faultsOf(sources)]
  if (all.length > 0) throw new StartFaults('The models have faults', all)
  return sources
}

function faultsOf(sources: readonly Source[]): readonly string[] {
  try {
    Catalog.from(sources)
    return []
  } catch (error) {
    if (error instanceof StartFaults) return error.faults
    throw error
  }
}

/** What could be read, and what was wrong with the rest. */
export async function loadCatalogSources(place: string): Promise<Loaded> {
  const faults: string[] = []
  const jiti = createJiti(import.meta.url, {
    fsCache: false,
    interopDefault: false,
    // The name works in any folder, and a model file gets the very function of this process.
    virtualModules: { verso: { defineModel } },
  })
  const sources: Source[] = []
  for (const file of modelFiles(place, faults)) {
    const shown = shownAs(file)
    const report = (fault: string) => faults.push(`${shown}: ${fault}`)
    const definitions = file.endsWith('.json') ? readJson(file, report) : await readCode(jiti, file, report)
    for (const definition of definitions) {
      // A file that passes on the models of another defines no second one.
      if (!sources.some((source) => source.definition === definition))
        sources.push({ file: shown, definition })
    }
  }
  return { sources, faults }
}

function modelFiles(place: string, faults: string[]): string[] {
  const root = path.resolve(place)
  const shown = shownAs(root)
  const stats = statSync(root, { throwIfNoEntry: false })
  if (!stats) {
    faults.push(`${shown}: there is no such file or folder; to get a starter folder, run: verso init`)
    return []
  }
  if (!stats.isDirectory()) {
    if (isModelFile(root)) return [root]
    faults.push(`${shown}: a model file ends in ${EXTENSIONS.join(', ')}`)
    return []
  }
  const files = filesBelow(root).sort()
  if (files.length === 0)
    faults.push(`${shown}: there is no model file in it; to get a starter, run: verso init ${shown}`)
  return files
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const { name } = entry
    if (name.startsWith('.') || name === 'node_modules') return []
    const full = path.join(folder, name)
    if (entry.isDirectory()) return filesBelow(full)
    // A folder that Kubernetes mounts holds links to files.
    const isFile =
      entry.isFile() || (entry.isSymbolicLink() && statSync(full, { throwIfNoEntry: false })?.isFile())
    return isFile && isModelFile(full) ? [full] : []
  })
}

function isModelFile(file: string): boolean {
  return EXTENSIONS.includes(path.extname(file)) && !OTHERS.test(path.basename(file))
}

type Report = (fault: string) => void

function readJson(file: string, report: Report): readonly unknown[] {
  let text = ''
  try {
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
    const parsed: unknown = JSON.parse(text)
    if (!Array.isArray(parsed)) return [parsed]
    if (parsed.length === 0) report('there is no model in the list')
    return parsed
  } catch (error) {
    report(error instanceof SyntaxError ? describeJsonFault(text, error) : messageOf(error))
    return []
  }
}

async function readCode(jiti: Jiti, file: string, report: Report): Promise<readonly unknown[]> {
  try {
    const exports = await jiti.import<Readonly<Record<string, unknown>>>(file)
    const models = Object.values(exports).filter(isDefinedModel)
    if (models.length === 0) report('exports no model: write export const … = defineModel({ … })')
    return [...new Set(models)]
  } catch (error) {
    report(describeCodeFault(file, error))
    return []
  }
}

function describeCodeFault(file: string, error: unknown): string {
  const message = messageOf(error)
  const parse = /^(?:ParseError: )?(.*?)\s*\n\s*(.+):(\d+):(\d+)$/s.exec(message)
  if (parse) {
    const [, what = '', where = '', line = '', column = ''] = parse
    const other = path.resolve(where) === file ? '' : `${shownAs(where)}, `
    // The compiler counts columns from 0.
    return `${other}line ${line}, column ${Number(column) + 1}: ${what}`
  }
  // Lines are those of the file, columns are not; and a missing module is named already.
  const places = error instanceof Error && !('code' in error) ? (error.stack?.split('\n') ?? []) : []
  const place = places.find((line) => line.includes(`${file}:`))
  const [, line] = /:(\d+):\d+\)?$/.exec(place ?? '') ?? []
  return line === undefined ? message : `line ${line}: ${message}`
}

function messageOf(error: unknown): string {
  const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\nRequire stack:')
  return first
}

/** As people would write it: relative where that is shorter. */
function shownAs(file: string): string {
  const relative = path.relative(process.cwd(), file)
  return relative !== '' && relative.length < file.length ? relative : file
}
