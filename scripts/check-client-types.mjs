// Compiles mistakes in programs that use the client: each must have one diagnostic, with the text that test/types/mistakes.mjs expects.
import { readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { MISTAKES, PRELUDE } from '../test/types/mistakes.mjs'

const ROOT = path.join(import.meta.dirname, '..')
const FILE = path.join(ROOT, 'test/types/mistakes.ts')

/** Returns what is wrong. `edits` maps paths of files to functions that change their text, to test this check itself. */
export function findFaults(edits = {}) {
  const lines = MISTAKES.map(([statement]) => `void ${statement}`)
  const diagnostics = compile(`${PRELUDE}${lines.join('\n')}\n`, edits)
  const first = PRELUDE.split('\n').length - 1
  const byLine = groupByLine(diagnostics, first)
  const elsewhere = diagnostics.filter(({ line }) => MISTAKES[line - first] === undefined)
  return [
    ...elsewhere.map(({ file, text }) => `${file}: ${text}`),
    ...MISTAKES.flatMap(([statement, ...parts], index) => {
      const texts = (byLine.get(index) ?? []).map(({ text }) => text)
      const missing = parts.filter((part) => !texts[0]?.includes(part))
      if (texts.length === 1 && missing.length === 0) return []
      const found = texts.length === 1 ? `expected ${missing.join(' … ')}` : `${texts.length} diagnostics`
      return [`${statement}: ${found}${texts.map((text) => `\n  ${text}`).join('')}`]
    }),
  ]
}

function groupByLine(diagnostics, first) {
  const groups = new Map()
  for (const each of diagnostics)
    groups.set(each.line - first, [...(groups.get(each.line - first) ?? []), each])
  return groups
}

/** Parsed files by name: the next compilation takes them from here. */
const parsed = new Map()

function compile(text, edits) {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, ROOT)
  const host = ts.createCompilerHost(options)
  const changed = new Map(
    Object.entries(edits).map(([file, edit]) => {
      const name = path.join(ROOT, file)
      const [before, after] = [readFileSync(name, 'utf8'), edit(readFileSync(name, 'utf8'))]
      if (before === after) throw new Error(`the edit changes nothing in ${file}`)
      return [name, after]
    }),
  )
  changed.set(FILE, text)
  const format = { languageVersion: options.target, impliedNodeFormat: ts.ModuleKind.ESNext }
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (name) => changed.has(name) || fileExists(name)
  host.readFile = (name) => changed.get(name) ?? readFile(name)
  host.getSourceFile = (name, ...rest) => {
    if (changed.has(name)) return ts.createSourceFile(name, changed.get(name), format, true)
    if (!parsed.has(name)) parsed.set(name, getSourceFile(name, ...rest))
    return parsed.get(name)
  }
  const program = ts.createProgram([FILE], options, host)
  const files = [FILE, ...Object.keys(edits).map((file) => path.join(ROOT, file))]
  return files
    .flatMap((file) => ts.getPreEmitDiagnostics(program, program.getSourceFile(file)))
    .map(({ file, start, messageText }) => ({
      file: path.relative(ROOT, file?.fileName ?? ''),
      line: file?.fileName === FILE ? file.getLineAndCharacterOfPosition(start).line : -1,
      text: ts.flattenDiagnosticMessageText(messageText, '\n  '),
    }))
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  const faults = findFaults()
  console.log(
    faults.length > 0
      ? faults.join('\n')
      : `types of the client: ${MISTAKES.length} mistakes, one diagnostic for each`,
  )
  process.exitCode = faults.length > 0 ? 1 : 0
}
