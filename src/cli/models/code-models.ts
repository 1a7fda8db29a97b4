// Loads models from TypeScript and JavaScript files.
import { createRequire } from 'node:module'
import path from 'node:path'
import type { Jiti } from 'jiti'
import { isConflict } from '../../embedding/version-conflict.js'
import { ConfigError, VersoError } from '../../errors.js'
import { defineRoutes } from '../../http/ext/route-plugin.js'
import { defineModel, isDefinedModel } from '../../model/definition/define-model.js'
import { defineHooks, extendModel, isModelExtension } from '../../model/definition/extend-model.js'
import { every } from '../../service/background/schedule.js'
import { readModelFile, toDisplayPath, type ModelFileExports, type ModelFile } from './model-files.js'
import { importsModelFunctions, PACKAGE_NAME } from './model-script.js'

/** The modules of this process. The compiler stores every file that it has evaluated here. */
const moduleCache = createRequire(import.meta.url).cache
/** The folder of the compiled service. */
const OWN_FOLDER = path.resolve(import.meta.dirname, '../..')
const OWN_MODULES: ReadonlySet<string> = new Set(Object.keys(moduleCache))

/** The exported values of a file by name. */
export type FileExports = Readonly<Record<string, unknown>>

/**
 * Loads all files of one folder. Uses one compiler instance for all of them, so that a module that two files import is evaluated once.
 * Evaluates every file afresh, except for dependencies in `node_modules`.
 */
export class ModelScriptLoader {
  #jiti: Promise<Jiti> | undefined
  /** Files that could not be compiled. */
  readonly #broken = new Set<string>()

  /** With `keepsModules`, modules that another loader has evaluated are not evaluated again. */
  constructor(
    private readonly folder: string,
    keepsModules = false,
  ) {
    if (keepsModules) return
    for (const file of this.#listEvaluated()) Reflect.deleteProperty(moduleCache, file)
  }

  async load(source: ModelFile): Promise<ModelFileExports> {
    if (!source.isExplicit) {
      const text = readModelFile(source)?.toString('utf8')
      if (text === undefined) return { kind: 'large' }
      if (!importsModelFunctions(text)) return { kind: 'script' }
    }
    const exported = await this.importFile(source)
    if (exported === undefined) return []
    const models = Object.values(exported).filter((value) => isDefinedModel(value) || isModelExtension(value))
    if (models.length === 0)
      source.reportError(
        'exports neither a model nor hooks; write: export const … = defineModel({ … }), or: export const … = defineHooks(…, { … }), or move the file out of the folder of models',
      )
    return [...new Set<unknown>(models)]
  }

  /** Lists the files that were evaluated, including those that model files import. */
  listFiles(): string[] {
    return [...new Set([...this.#listEvaluated(), ...this.#broken])]
  }

  /** Evaluates a file. Returns its exports, or undefined after an error, which it reports. */
  async importFile({
    file,
    reportError,
  }: Pick<ModelFile, 'file' | 'reportError'>): Promise<FileExports | undefined> {
    this.#jiti ??= loadJiti()
    const jiti = await this.#jiti
    try {
      return await jiti.import<FileExports>(file)
    } catch (error) {
      const { message, brokenFile } = describeScriptError(file, error)
      if (brokenFile !== undefined) this.#broken.add(brokenFile)
      reportError(message)
      return undefined
    }
  }

  #listEvaluated(): string[] {
    return Object.keys(moduleCache).filter((file) => !OWN_MODULES.has(file) && !this.#isDependency(file))
  }

  #isDependency(file: string): boolean {
    return path.relative(this.folder, file).split(path.sep).includes('node_modules')
  }
}

/** Loads the compiler on demand, because it is large. */
async function loadJiti(): Promise<Jiti> {
  const { createJiti } = await import('jiti')
  return createJiti(import.meta.url, {
    fsCache: false,
    interopDefault: false,
    // Lets a model file in any folder import the package, and gives it the functions of this process.
    virtualModules: {
      [PACKAGE_NAME]: {
        defineModel,
        extendModel,
        defineHooks,
        defineRoutes,
        every,
        isConflict,
        VersoError,
        ConfigError,
      },
    },
  })
}

interface ScriptError {
  readonly message: string
  readonly brokenFile?: string
}

function describeScriptError(file: string, error: unknown): ScriptError {
  const message = stripRequireStack(error)
  const parse = /^(?:ParseError: )?(.*?)\s*\n\s*(.+):(\d+):(\d+)$/s.exec(message)
  if (parse) {
    const [, what = '', where = '', line = '', column = ''] = parse
    const brokenFile = path.resolve(where)
    const other = brokenFile === file ? '' : `${toDisplayPath(where)}, `
    // The compiler counts columns from 0.
    return { message: `${other}line ${line}, column ${Number(column) + 1}: ${what}`, brokenFile }
  }
  // Line numbers of the stack are those of the file, columns are not. The message of a missing module names it already.
  const stackLines = error instanceof Error && !('code' in error) ? (error.stack?.split('\n') ?? []) : []
  // The file may import the one that has thrown.
  for (const stackLine of stackLines) {
    const [, where = '', line = ''] = /\(?([^\s(]+):(\d+):\d+\)?$/.exec(stackLine) ?? []
    if (where === file) return { message: `line ${line}: ${message}` }
    if (isOfApplication(where)) return { message: `${toDisplayPath(where)}, line ${line}: ${message}` }
  }
  return { message }
}

/** True for a file of the user, and false for those of packages and of this one. */
function isOfApplication(file: string): boolean {
  return (
    path.isAbsolute(file) &&
    !file.split(path.sep).includes('node_modules') &&
    !file.startsWith(OWN_FOLDER + path.sep)
  )
}

function stripRequireStack(error: unknown): string {
  const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\nRequire stack:')
  return first
}
