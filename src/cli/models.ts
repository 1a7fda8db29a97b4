// Model files → definitions, with every fault of every file at once.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Jiti } from 'jiti'
import { StartFaults } from '../errors.js'
import { Catalog, type Source } from '../model/catalog.js'
import { defineModel, isDefinedModel, type ModelDefinition } from '../model/definition.js'
import { domainModels, type DomainModels } from '../model/domain/models.js'
import type { ReportLine } from '../model/domain/report.js'
import { nothingDeclared, type Declared } from '../model/domain/declared.js'
import { extend, extendModel, isModelExtension, type ModelExtension } from '../model/extension.js'
import { USER_MODEL } from '../model/model.js'
import { didYouMean } from '../model/similar.js'
import { isObject } from '../model/value.js'
import { readXml } from './domain-files.js'
import { describeJsonFault } from './json-fault.js'

const CODE = ['.ts', '.mts', '.js', '.mjs']
const EXTENSIONS = [...CODE, '.json', '.xml']
/** Files that a folder of models may have for other reasons. */
const OTHERS = /^(package|package-lock|tsconfig.*)\.json$|\.d\.m?ts$/

export interface Loaded {
  readonly sources: readonly Source[]
  readonly faults: readonly string[]
  /** What domain XML says that is not taken over. */
  readonly report: readonly ReportLine[]
}

/** The models of a file or a folder; refuses with the faults of all of them. */
export async function loadModels(place: string): Promise<readonly Source[]> {
  return (await loadReported(place)).sources
}

/** The same, with the report. */
export async function loadReported(place: string): Promise<Loaded> {
  const loaded = await loadCatalogSources(place)
  const all = [...loaded.faults, ...faultsOf(loaded.sources)]
  if (all.length > 0) throw new StartFaults('The models have faults', all)
  return loaded
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
  const { definitions, extensions, declared } = await findModels(place, faults)
  const written = [...definitions.keys()].filter(isUsable)
  const others = new Map(written.map(({ name, fields }) => [name, fields]))
  const byModel = groupByName([...extensions.keys()])
  const domain = domainModels(declared, { extensions: byModel, others })
  const extended = (definition: unknown) =>
    isUsable(definition) && byModel.has(definition.name)
      ? extend(definition, byModel.get(definition.name) ?? [])
      : definition
  const sources = [
    ...[...definitions].map(([definition, file]) => ({ file, definition: extended(definition) })),
    ...domain.models,
  ]
  const names = new Set([...others.keys(), ...domain.models.map(({ definition }) => definition.name)])
  for (const [extension, file] of extensions) {
    const { name } = extension
    // The users are a model of the service, which people may add to.
    if (name === USER_MODEL) sources.push({ file, definition: extension })
    else if (!names.has(name))
      faults.push(`${file}: it extends "${name}"${didYouMean(name, names)}, which is no model`)
  }
  return { sources, faults: [...faults, ...domain.faults], report: domain.report }
}

/** Models of XML alone, without what extends them; refuses with all faults, and what a service would refuse. */
export async function loadDomain(
  place: string,
): Promise<DomainModels & { readonly extensionFiles: readonly string[] }> {
  await loadReported(place)
  const faults: string[] = []
  const { definitions, extensions, declared } = await findModels(place, faults)
  const others = new Map([...definitions.keys()].filter(isUsable).map(({ name, fields }) => [name, fields]))
  const domain = domainModels(declared, { extensions: new Map(), others })
  if (faults.length === 0 && domain.models.length === 0) faults.push(`${place}: there is no domain XML in it`)
  const all = [...faults, ...domain.faults]
  if (all.length > 0) throw new StartFaults('The models have faults', all)
  return { ...domain, extensionFiles: [...new Set(extensions.values())] }
}

function isUsable(definition: unknown): definition is ModelDefinition {
  return isObject(definition) && typeof definition['name'] === 'string' && isObject(definition['fields'])
}

function groupByName(extensions: readonly ModelExtension[]): Map<string, ModelExtension[]> {
  const groups = new Map<string, ModelExtension[]>()
  for (const extension of extensions)
    groups.set(extension.name, [...(groups.get(extension.name) ?? []), extension])
  return groups
}

/** What the files of a place hold; a file that passes on the models of another defines no second one. */
interface Found {
  /** As they were written, with the file. */
  readonly definitions: Map<unknown, string>
  readonly extensions: Map<ModelExtension, string>
  readonly declared: Declared
}

async function findModels(place: string, faults: string[]): Promise<Found> {
  const found: Found = { definitions: new Map(), extensions: new Map(), declared: nothingDeclared() }
  const files = modelFiles(place, faults)
  let jiti: Jiti | undefined
  for (const file of files) {
    const shown = shownAs(file)
    const report = (fault: string) => faults.push(`${shown}: ${fault}`)
    if (file.endsWith('.xml')) {
      readXml(file, shown, found.declared, file === path.resolve(place), report)
      continue
    }
    const exported = file.endsWith('.json')
      ? readJson(file, report)
      : await readCode((jiti ??= await openJiti()), file, report)
    for (const value of exported) {
      if (isModelExtension(value)) found.extensions.set(value, found.extensions.get(value) ?? shown)
      else found.definitions.set(value, found.definitions.get(value) ?? shown)
    }
  }
  const { definitions, declared } = found
  if (files.length > 0 && faults.length === 0 && definitions.size + declared.entities.length === 0)
    faults.push(`${shownAs(path.resolve(place))}: there is no model in it`)
  return found
}

/** A compiler is much to load, for those who have code to compile. */
async function openJiti(): Promise<Jiti> {
  const { createJiti } = await import('jiti')
  return createJiti(import.meta.url, {
    fsCache: false,
    interopDefault: false,
    // The name works in any folder, and a model file gets the very functions of this process.
    virtualModules: { verso: { defineModel, extendModel } },
  })
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
    const models = Object.values(exports).filter((value) => isDefinedModel(value) || isModelExtension(value))
    if (models.length === 0) report('exports no model: write export const … = defineModel({ … })')
    return [...new Set<unknown>(models)]
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
