// Model files → definitions, with every fault of every file at once.
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { Catalog, type ModelSource } from '../../model/catalog/catalog.js'
import type { ModelDefinition } from '../../model/definition/define-model.js'
import { convertDomainModels, type DomainModels } from '../../formats/domain-xml/models.js'
import type { DomainDiagnostic } from '../../formats/domain-xml/report.js'
import { createDeclarations, type DomainDeclarations } from '../../formats/domain-xml/declarations.js'
import {
  applyExtensions,
  isModelExtension,
  type ModelExtension,
} from '../../model/definition/extend-model.js'
import { USER_MODEL } from '../../model/definition/model.js'
import { didYouMean } from '../../model/values/did-you-mean.js'
import { isObject } from '../../model/values/value.js'
import { CodeReader } from './code-models.js'
import { readXml } from './domain-files.js'
import { fileWords } from '../file-error.js'
import { readJson } from './json-models.js'
import { findModelFiles, shownAs, type ModelFile, type Reason } from './model-files.js'
import { summarizePassedOver, type PassedOver } from './skipped-files.js'

export interface Loaded {
  readonly sources: readonly ModelSource[]
  readonly faults: readonly string[]
  /** What domain XML says that is not taken over. */
  readonly report: readonly DomainDiagnostic[]
  /** What lies below the folder and is no model. */
  readonly passedOver: readonly PassedOver[]
}

/** The models of a file or a folder; refuses with the faults of all of them. */
export async function loadModels(place: string): Promise<readonly ModelSource[]> {
  return (await loadReported(place)).sources
}

/** The same, with the report. */
export async function loadReported(place: string): Promise<Loaded> {
  const loaded = await loadCatalogSources(place)
  refuseFaults(loaded)
  return loaded
}

export function refuseFaults({ faults, sources }: Loaded): void {
  const all = [...faults, ...faultsOf(sources)]
  if (all.length > 0) throw new ConfigError('The models have faults', all)
}

function faultsOf(sources: readonly ModelSource[]): readonly string[] {
  try {
    Catalog.from(sources)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.errors
    throw error
  }
}

/** What could be read, and what was wrong with the rest. */
export async function loadCatalogSources(place: string): Promise<Loaded> {
  const { definitions, extensions, declared, passedOver, faults } = await findModels(place)
  const written = [...definitions.keys()].filter(isUsable)
  const others = new Map(written.map(({ name, fields }) => [name, fields]))
  const byModel = groupByName([...extensions.keys()])
  const domain = convertDomainModels(declared, { extensions: byModel, others })
  const extended = (definition: unknown) =>
    isUsable(definition) && byModel.has(definition.name)
      ? applyExtensions(definition, byModel.get(definition.name) ?? [])
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
  if (faults.length === 0 && definitions.size + declared.entities.length === 0)
    faults.push(describeEmpty(place), ...summarizePassedOver(passedOver))
  return { sources, faults: [...faults, ...domain.errors], report: domain.report, passedOver }
}

function describeEmpty(place: string): string {
  const shown = shownAs(path.resolve(place))
  return `${shown}: there is no model in it; to get a starter, run: verso init`
}

/** Models of XML alone, without what extends them; refuses with all faults, and what a service would refuse. */
export async function loadDomain(
  place: string,
): Promise<DomainModels & { readonly extensionFiles: readonly string[] }> {
  await loadReported(place)
  const { definitions, extensions, declared, faults } = await findModels(place)
  const others = new Map([...definitions.keys()].filter(isUsable).map(({ name, fields }) => [name, fields]))
  const domain = convertDomainModels(declared, { extensions: new Map(), others })
  if (faults.length === 0 && domain.models.length === 0) faults.push(`${place}: there is no domain XML in it`)
  const all = [...faults, ...domain.errors]
  if (all.length > 0) throw new ConfigError('The models have faults', all)
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
  readonly declared: DomainDeclarations
  readonly passedOver: PassedOver[]
  readonly faults: string[]
}

async function findModels(place: string): Promise<Found> {
  const { files, passedOver, faults } = findModelFiles(place)
  const found: Found = {
    ...{ definitions: new Map(), extensions: new Map(), declared: createDeclarations() },
    ...{ passedOver: [...passedOver], faults: [...faults] },
  }
  const code = new CodeReader()
  for (const file of files) {
    const shown = shownAs(file)
    const fault = (what: string) => found.faults.push(`${shown}: ${what}`)
    try {
      const isNamed = file === path.resolve(place)
      const reason = await readInto(found, { file, shown, isNamed, fault }, code)
      if (reason) found.passedOver.push({ ...reason, location: shown })
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error
      fault(fileWords(error) ?? error.message)
    }
  }
  return found
}

/** Why it was passed over, if it was. */
async function readInto(
  { definitions, extensions, declared }: Found,
  source: ModelFile,
  code: CodeReader,
): Promise<Reason | undefined> {
  const { file, shown } = source
  if (file.endsWith('.xml')) return readXml(source, declared)
  const exported = file.endsWith('.json') ? readJson(source) : await code.read(source)
  if ('kind' in exported) return exported
  for (const value of exported) {
    if (isModelExtension(value)) extensions.set(value, extensions.get(value) ?? shown)
    else definitions.set(value, definitions.get(value) ?? shown)
  }
  return undefined
}
