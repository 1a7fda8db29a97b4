// Models in TypeScript and JavaScript: which scripts are run, and what they export.
import path from 'node:path'
import type { Jiti } from 'jiti'
import { defineModel, isDefinedModel } from '../../model/definition/define-model.js'
import { extendModel, isModelExtension } from '../../model/definition/extend-model.js'
import { readModelFile, shownAs, type Exported, type ModelFile } from './model-files.js'
import { importsModelFunctions, PACKAGE } from './model-script.js'

/** Compiles with one and the same compiler, so that a model of two files is one. */
export class CodeReader {
  #jiti: Promise<Jiti> | undefined

  async read(source: ModelFile): Promise<Exported> {
    if (!source.isNamed) {
      const text = readModelFile(source)?.toString('utf8')
      if (text === undefined) return { kind: 'large' }
      if (!importsModelFunctions(text)) return { kind: 'script' }
    }
    this.#jiti ??= openJiti()
    return run(await this.#jiti, source)
  }
}

/** A compiler is much to load, for those who have code to compile. */
async function openJiti(): Promise<Jiti> {
  const { createJiti } = await import('jiti')
  return createJiti(import.meta.url, {
    fsCache: false,
    interopDefault: false,
    // The name works in any folder, and a model file gets the very functions of this process.
    virtualModules: { [PACKAGE]: { defineModel, extendModel } },
  })
}

async function run(jiti: Jiti, { file, fault }: ModelFile): Promise<readonly unknown[]> {
  try {
    const exports = await jiti.import<Readonly<Record<string, unknown>>>(file)
    const models = Object.values(exports).filter((value) => isDefinedModel(value) || isModelExtension(value))
    if (models.length === 0) fault('exports no model: write export const … = defineModel({ … })')
    return [...new Set<unknown>(models)]
  } catch (error) {
    fault(describeCodeFault(file, error))
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
