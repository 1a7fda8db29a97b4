// Loads models from TypeScript and JavaScript files.
import path from 'node:path'
import type { Jiti } from 'jiti'
import { defineModel, isDefinedModel } from '../../model/definition/define-model.js'
import { extendModel, isModelExtension } from '../../model/definition/extend-model.js'
import { readModelFile, toDisplayPath, type ModelFileExports, type ModelFile } from './model-files.js'
import { importsModelFunctions, PACKAGE_NAME } from './model-script.js'

/** Uses one compiler instance for all files, so that a module that two files import is evaluated once. */
export class ModelScriptLoader {
  #jiti: Promise<Jiti> | undefined

  async load(source: ModelFile): Promise<ModelFileExports> {
    if (!source.isExplicit) {
      const text = readModelFile(source)?.toString('utf8')
      if (text === undefined) return { kind: 'large' }
      if (!importsModelFunctions(text)) return { kind: 'script' }
    }
    this.#jiti ??= loadJiti()
    return importModels(await this.#jiti, source)
  }
}

/** Loads the compiler on demand, because it is large. */
async function loadJiti(): Promise<Jiti> {
  const { createJiti } = await import('jiti')
  return createJiti(import.meta.url, {
    fsCache: false,
    interopDefault: false,
    // Lets a model file in any folder import the package, and gives it the functions of this process.
    virtualModules: { [PACKAGE_NAME]: { defineModel, extendModel } },
  })
}

async function importModels(jiti: Jiti, { file, reportError }: ModelFile): Promise<readonly unknown[]> {
  try {
    const exports = await jiti.import<Readonly<Record<string, unknown>>>(file)
    const models = Object.values(exports).filter((value) => isDefinedModel(value) || isModelExtension(value))
    if (models.length === 0) reportError('exports no model; write: export const … = defineModel({ … })')
    return [...new Set<unknown>(models)]
  } catch (error) {
    reportError(describeScriptError(file, error))
    return []
  }
}

function describeScriptError(file: string, error: unknown): string {
  const message = stripRequireStack(error)
  const parse = /^(?:ParseError: )?(.*?)\s*\n\s*(.+):(\d+):(\d+)$/s.exec(message)
  if (parse) {
    const [, what = '', where = '', line = '', column = ''] = parse
    const other = path.resolve(where) === file ? '' : `${toDisplayPath(where)}, `
    // The compiler counts columns from 0.
    return `${other}line ${line}, column ${Number(column) + 1}: ${what}`
  }
  // Line numbers of the stack are those of the file, columns are not. The message of a missing module names it already.
  const stackLines = error instanceof Error && !('code' in error) ? (error.stack?.split('\n') ?? []) : []
  const stackLine = stackLines.find((line) => line.includes(`${file}:`))
  const [, line] = /:(\d+):\d+\)?$/.exec(stackLine ?? '') ?? []
  return line === undefined ? message : `line ${line}: ${message}`
}

function stripRequireStack(error: unknown): string {
  const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\nRequire stack:')
  return first
}
