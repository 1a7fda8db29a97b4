// Loads model definitions from files and collects the errors of all of them.
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { Catalog } from '../../model/catalog/catalog.js'
import {
  extendSources,
  groupExtensionsByModel,
  isExtensible,
  type ModelSource,
} from '../../model/catalog/model-sources.js'
import type { ModelDefinition } from '../../model/definition/define-model.js'
import { convertDomainModels, type DomainModels } from '../../formats/domain-xml/models.js'
import type { DomainDiagnostic } from '../../formats/domain-xml/report.js'
import { createDeclarations, type DomainDeclarations } from '../../formats/domain-xml/declarations.js'
import { isModelExtension, type ModelExtension } from '../../model/definition/extend-model.js'
import { ModelScriptLoader } from './code-models.js'
import { readDomainFile } from './domain-files.js'
import { explainFileError } from '../file-error.js'
import { readJsonModels } from './json-models.js'
import { findModelFiles, toDisplayPath, type ModelFile, type SkipReason } from './model-files.js'
import { summarizeSkipped, type SkippedFile } from './skipped-files.js'

export interface LoadedModels {
  readonly sources: readonly ModelSource[]
  /** The extensions of models in the order in which they apply. `sources` contain what they add. */
  readonly extensions: readonly ModelSource[]
  readonly errors: readonly string[]
  /** Parts of the domain XML that Verso does not support. */
  readonly report: readonly DomainDiagnostic[]
  /** Files in the folder that hold no model. */
  readonly skipped: readonly SkippedFile[]
  /** Absolute paths of the scripts that were evaluated. Model files may import some from other folders. */
  readonly scripts: readonly string[]
}

/** Loaded models without errors, and the catalog that was built to check them. */
export interface LoadedCatalog extends LoadedModels {
  readonly catalog: Catalog
}

/** Loads the models of a file or folder. Throws one error that lists all problems. */
export async function loadCatalog(modelsPath: string): Promise<Catalog> {
  return (await loadModelsWithReport(modelsPath)).catalog
}

/** Loads the models together with the reports about skipped files and unsupported XML. */
export async function loadModelsWithReport(modelsPath: string): Promise<LoadedCatalog> {
  const loaded = await loadCatalogSources(modelsPath)
  return { ...loaded, catalog: createCatalog(loaded) }
}

/** Throws one error that lists the problems of the files and of the models. */
export function createCatalog({ errors, sources }: LoadedModels): Catalog {
  const all = [...errors]
  try {
    const catalog = Catalog.from(sources)
    if (all.length === 0) return catalog
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    all.push(...error.errors)
  }
  throw new ConfigError('The models are invalid', all)
}

/** Loads all readable models and returns the errors of the rest. */
export async function loadCatalogSources(modelsPath: string): Promise<LoadedModels> {
  const { definitions, extensions, declared, skipped, errors, scripts } = await parseModelFiles(modelsPath)
  const others = mapFieldsByModel(definitions.keys())
  const byModel = groupExtensionsByModel(extensions.keys())
  const domain = convertDomainModels(declared, { extensions: byModel, others })
  // The models of domain XML have their extensions already: the conversion depends on them.
  const extended = new Set(domain.models.map(({ definition }) => definition.name))
  const pending = [...extensions].filter(([{ name }]) => !extended.has(name))
  const written = [...definitions, ...pending].map(([definition, file]) => ({ file, definition }))
  const sources = extendSources([...written, ...domain.models], (error) => errors.push(error))
  if (errors.length === 0 && definitions.size + declared.entities.length === 0)
    errors.push(describeMissingModels(modelsPath), ...summarizeSkipped(skipped))
  return {
    sources,
    extensions: [...extensions].map(([definition, file]) => ({ file, definition })),
    errors: [...errors, ...domain.errors],
    report: domain.report,
    skipped,
    scripts,
  }
}

function describeMissingModels(modelsPath: string): string {
  const displayPath = toDisplayPath(path.resolve(modelsPath))
  return `${displayPath}: no model was found; to create example models, run: verso init`
}

/**
 * Loads the models of domain XML without their extensions. Throws one error that lists all problems, including
 * models that a service would reject.
 */
export async function loadDomainModels(
  modelsPath: string,
): Promise<DomainModels & { readonly extensionFiles: readonly string[] }> {
  await loadModelsWithReport(modelsPath)
  const { definitions, extensions, declared, errors } = await parseModelFiles(modelsPath)
  const others = mapFieldsByModel(definitions.keys())
  const domain = convertDomainModels(declared, { extensions: new Map(), others })
  if (errors.length === 0 && domain.models.length === 0) errors.push(`${modelsPath}: no domain XML was found`)
  const all = [...errors, ...domain.errors]
  if (all.length > 0) throw new ConfigError('The models are invalid', all)
  return { ...domain, extensionFiles: [...new Set(extensions.values())] }
}

function mapFieldsByModel(definitions: Iterable<unknown>): Map<string, ModelDefinition['fields']> {
  return new Map([...definitions].filter(isExtensible).map(({ name, fields }) => [name, fields]))
}

/** Contents of all files. A model that a second file re-exports is registered once. */
interface ParsedModelFiles {
  /** Definitions as written, mapped to the file that exports them. */
  readonly definitions: Map<unknown, string>
  readonly extensions: Map<ModelExtension, string>
  readonly declared: DomainDeclarations
  readonly skipped: SkippedFile[]
  readonly scripts: string[]
  readonly errors: string[]
}

async function parseModelFiles(modelsPath: string): Promise<ParsedModelFiles> {
  const { files, skipped, errors } = findModelFiles(modelsPath)
  const found: ParsedModelFiles = {
    definitions: new Map(),
    extensions: new Map(),
    declared: createDeclarations(),
    skipped: [...skipped],
    scripts: [],
    errors: [...errors],
  }
  const root = path.resolve(modelsPath)
  const loader = new ModelScriptLoader(files[0] === root ? path.dirname(root) : root)
  for (const file of files) {
    const displayPath = toDisplayPath(file)
    const reportError = (what: string) => found.errors.push(`${displayPath}: ${what}`)
    try {
      const isExplicit = file === root
      const reason = await parseModelFileInto(found, { file, displayPath, isExplicit, reportError }, loader)
      if (reason) found.skipped.push({ ...reason, location: displayPath })
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error
      reportError(explainFileError(error) ?? error.message)
    }
  }
  found.scripts.push(...loader.listFiles())
  return found
}

/** Returns the reason if the file was skipped. */
async function parseModelFileInto(
  { definitions, extensions, declared }: ParsedModelFiles,
  source: ModelFile,
  loader: ModelScriptLoader,
): Promise<SkipReason | undefined> {
  const { file, displayPath } = source
  if (file.endsWith('.xml')) return readDomainFile(source, declared)
  const exported = file.endsWith('.json') ? readJsonModels(source) : await loader.load(source)
  if ('kind' in exported) return exported
  for (const value of exported) {
    if (isModelExtension(value)) extensions.set(value, extensions.get(value) ?? displayPath)
    else definitions.set(value, definitions.get(value) ?? displayPath)
  }
  return undefined
}
