// Parses the flags of a benchmark: positive numbers, lists of names, files.
import { parseArgs } from 'node:util'

/**
 * `kinds` maps each flag to { number: default }, { names, initial }, or { file: true }. A flag that is not given and has
 * no default is undefined; `initial: null` means none for names.
 */
export function readFlags(usage, kinds, args = process.argv.slice(2)) {
  const options = Object.fromEntries(Object.keys(kinds).map((name) => [name, { type: 'string' }]))
  const { values } = parseArgs({ args, options: { ...options, help: { type: 'boolean' } } })
  if (values.help) {
    console.log(usage)
    process.exit()
  }
  const read = Object.entries(kinds).map(([name, kind]) => [name, parseFlag(name, kind, values[name], usage)])
  return Object.fromEntries(read)
}

function parseFlag(name, kind, given, usage) {
  if (kind.file) return given
  if (kind.names) return parseNames(name, kind, given, usage)
  if (given === undefined) return kind.number
  const number = Number(given)
  if (number > 0 && (name === 'seconds' || Number.isInteger(number))) return number
  throw new Error(`--${name} must be a number above 0\n${usage}`)
}

function parseNames(name, { names, initial = names }, given, usage) {
  if (given === undefined) return initial ?? undefined
  if (given === 'all') return names
  if (given === 'none') return []
  const chosen = given.split(',').map((each) => each.trim())
  const unknown = chosen.filter((each) => !names.includes(each))
  if (unknown.length > 0)
    throw new Error(`--${name} knows no ${unknown.join(', ')}, but ${names.join(', ')}\n${usage}`)
  return names.filter((each) => chosen.includes(each))
}
