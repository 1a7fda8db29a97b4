// Measures the shape of src: files and lines by folder, long signatures, module-level WeakMaps, repeated names, file sizes, vague
// comments. Usage: node scripts/shape.mjs [src] [--list] [--before <src of another checkout>]
import { readFileSync, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import ts from 'typescript'
import { printText } from '../bench/table.mjs'

const MAX_PARAMETERS = 4
const MAX_FILE_LINES = 300
const SMALL_FILE_LINES = 60
const MAX_FOLDER_FILES = 15
/** A comment that begins with one of these words often lacks a subject. */
const VAGUE_START = /^(What|Whatever|Who|Whoever|Whom|Whose|Whether|Those|The same|Where|Wherever|As|Of)\b/

/** `npm run check` fails if a measurement exceeds one of these. */
const LIMITS = {
  longSignatures: 1,
  weakMaps: 2,
  repeatedTypes: 0,
  repeatedFunctions: 0,
  longFiles: 0,
  vagueCommentPercent: 0.5,
}

/** Measures a tree, given as path inside src → text. */
export function measure(tree) {
  const sources = [...tree].map(([file, text]) =>
    ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true),
  )
  const comments = sources.flatMap(listComments)
  const vague = comments.filter(({ text }) => VAGUE_START.test(text))
  return {
    files: tree.size,
    lines: [...tree.values()].reduce((sum, text) => sum + countLines(text), 0),
    filesByFolder: sumByFolder(tree, () => 1),
    linesByFolder: sumByFolder(tree, countLines),
    longSignatures: sources.flatMap(listLongSignatures),
    weakMaps: sources.flatMap(listModuleWeakMaps),
    repeatedTypes: listRepeatedNames(sources, isTypeDeclaration),
    repeatedFunctions: listRepeatedNames(sources, ts.isFunctionDeclaration),
    longFiles: [...tree]
      .filter(([, text]) => countLines(text) > MAX_FILE_LINES)
      .map(([file, text]) => `${file}: ${countLines(text)} lines`),
    smallFiles: listSmallFiles(tree),
    comments: comments.length,
    vagueComments: vague.map(({ place, text }) => `${place} ${text.slice(0, 60)}`),
    vagueCommentPercent: comments.length === 0 ? 0 : (100 * vague.length) / comments.length,
  }
}

/** Returns one line for each exceeded limit. */
export function findExcesses(shape) {
  return Object.entries(LIMITS).flatMap(([name, limit]) => {
    const value = Array.isArray(shape[name]) ? shape[name].length : shape[name]
    return value > limit ? [`${name}: ${round(value)}, at most ${round(limit)}`] : []
  })
}

function countLines(text) {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}

function sumByFolder(tree, count) {
  const sums = new Map()
  for (const [file, text] of tree) {
    const folder = path.posix.dirname(file)
    sums.set(folder, (sums.get(folder) ?? 0) + count(text))
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** Compares files and lines by folder of two trees: headings and rows, with the sums of each top folder and of all. */
export function compareFolders(before, now) {
  const columns = [before.filesByFolder, now.filesByFolder, before.linesByFolder, now.linesByFolder].map(
    (entries) => new Map(entries),
  )
  const folders = new Set(columns.flatMap((sums) => [...sums.keys()]))
  for (const folder of [...folders]) folders.add(folder.split('/')[0])
  const rows = [...folders].sort().map((folder) => {
    const isTop = !folder.includes('/')
    const sums = columns.map((entries) => sumUnder(entries, folder, isTop))
    return [isTop ? folder : `  ${folder}`, ...sums].map(String)
  })
  const all = columns.map((entries) => [...entries.values()].reduce((sum, value) => sum + value, 0))
  return {
    headings: ['folder', 'files before', 'files', 'lines before', 'lines'],
    rows: [...rows, ['all', ...all.map(String)]],
  }
}

function sumUnder(entries, folder, withSubfolders) {
  return [...entries]
    .filter(([name]) => name === folder || (withSubfolders && name.startsWith(`${folder}/`)))
    .reduce((sum, [, value]) => sum + value, 0)
}

function listLongSignatures(source) {
  const found = []
  walk(source, (node) => {
    // An implementation's parameters are counted, the types of callbacks are not.
    if (!ts.isFunctionLike(node) || !node.body || node.parameters.length <= MAX_PARAMETERS) return
    const name = node.name?.getText() ?? node.parent.name?.getText?.() ?? 'a function'
    found.push(`${placeOf(source, node)} ${name}: ${node.parameters.length} parameters`)
  })
  return found
}

function listModuleWeakMaps(source) {
  return source.statements
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) =>
      declarationList.declarations
        .filter(({ initializer }) => initializer && /^new WeakMap\b/.test(initializer.getText()))
        .map((declaration) => `${placeOf(source, declaration)} ${declaration.name.getText()}`),
    )
}

function isTypeDeclaration(statement) {
  return (
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement) ||
    ts.isClassDeclaration(statement)
  )
}

/** Names at the top level of several files. */
function listRepeatedNames(sources, isCounted) {
  const filesByName = new Map()
  for (const source of sources) {
    for (const statement of source.statements) {
      if (!isCounted(statement) || !statement.name) continue
      const { text } = statement.name
      filesByName.set(text, [...(filesByName.get(text) ?? []), source.fileName])
    }
  }
  return [...filesByName]
    .filter(([, files]) => new Set(files).size > 1)
    .map(([name, files]) => `${name}: ${files.join(' ')}`)
}

/** Files that may belong into their only importer. */
function listSmallFiles(tree) {
  const importers = new Map()
  for (const [file, text] of tree) {
    for (const { fileName } of ts.preProcessFile(text, true, true).importedFiles) {
      if (!fileName.startsWith('.')) continue
      const target = path.posix.join(path.posix.dirname(file), fileName).replace(/js$/, 'ts')
      importers.set(target, (importers.get(target) ?? new Set()).add(file))
    }
  }
  return [...tree]
    .filter(([file, text]) => countLines(text) < SMALL_FILE_LINES && importers.get(file)?.size === 1)
    .map(([file, text]) => `${file}: ${countLines(text)} lines, for ${[...importers.get(file)][0]}`)
}

function listComments(source) {
  const found = new Map()
  walk(source, (node) => {
    const ranges = ts.getLeadingCommentRanges(source.text, node.getFullStart()) ?? []
    for (const { pos, end } of ranges) {
      const text = source.text
        .slice(pos, end)
        .replace(/^\/\*\*?|\*\/$|^\/\/|^\s*\*(?=\s|$)|^\s*\/\//gm, '')
        .trim()
      found.set(pos, { place: placeOf(source, { getStart: () => pos }), text })
    }
  })
  return mergeLineComments(
    source,
    [...found.entries()].sort(([a], [b]) => a - b),
  )
}

/** Consecutive `//` lines are one comment. */
function mergeLineComments(source, entries) {
  const merged = []
  let lastLine = -2
  for (const [pos, comment] of entries) {
    const { line } = source.getLineAndCharacterOfPosition(pos)
    const isContinued = line === lastLine + 1 && source.text.startsWith('//', pos)
    lastLine = line
    if (!isContinued) merged.push(comment)
  }
  return merged
}

function walk(node, visit) {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

function placeOf(source, node) {
  return `${source.fileName}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`
}

function round(value) {
  return Math.round(value * 100) / 100
}

function readSources(root) {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name.endsWith('.ts'),
  )
  const files = entries.map((entry) => path.join(entry.parentPath, entry.name)).sort()
  return new Map(
    files.map((file) => [path.relative(root, file).replaceAll(path.sep, '/'), readFileSync(file, 'utf8')]),
  )
}

function print(shape, isVerbose) {
  const { filesByFolder, linesByFolder } = shape
  const list = (entries) => entries.map(([folder, count]) => `${folder} ${count}`).join(', ')
  console.log(`files: ${shape.files}, lines: ${shape.lines}`)
  console.log(`files by folder: ${list(filesByFolder)}`)
  console.log(`lines by folder: ${list(linesByFolder)}`)
  const crowded = filesByFolder.filter(([, count]) => count > MAX_FOLDER_FILES)
  console.log(
    `folders with more than ${MAX_FOLDER_FILES} files: ${crowded.map(([name]) => name).join(', ') || 'none'}`,
  )
  const lists = {
    longSignatures: `functions with more than ${MAX_PARAMETERS} parameters`,
    weakMaps: 'module-level WeakMaps',
    repeatedTypes: 'type names defined in several files',
    repeatedFunctions: 'function names defined in several files',
    longFiles: `files over ${MAX_FILE_LINES} lines`,
    smallFiles: `files under ${SMALL_FILE_LINES} lines with one importer`,
    vagueComments: `comments that begin with What, Who, Whether, Those, The same, Where, As, Of, among ${shape.comments} (${round(shape.vagueCommentPercent)} %)`,
  }
  for (const [name, title] of Object.entries(lists)) {
    console.log(`${title}: ${shape[name].length}`)
    if (isVerbose) for (const line of shape[name]) console.log(`  ${line}`)
  }
}

if (realpathSync(process.argv[1]) === import.meta.filename) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { list: { type: 'boolean' }, before: { type: 'string' } },
  })
  const [root = fileURLToPath(new URL('../src', import.meta.url))] = positionals
  const shape = measure(readSources(root))
  print(shape, values.list)
  if (values.before) console.log(printText(compareFolders(measure(readSources(values.before)), shape)))
  const excesses = findExcesses(shape)
  for (const excess of excesses) console.log(`too many ${excess}`)
  process.exitCode = excesses.length > 0 ? 1 : 0
}
