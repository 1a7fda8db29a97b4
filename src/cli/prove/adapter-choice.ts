// Which adapter: one of ours by its name, or one of a file.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../../errors.js'
import { isObject } from '../../model/values/value.js'
import type { Adapter, AdapterOptions } from './adapter.js'
import { lastWriteWins } from './last-write-wins.js'
import { versoAdapter } from './verso-adapter.js'

const OWN: Readonly<Record<string, (options: AdapterOptions) => Adapter>> = {
  verso: versoAdapter,
  'last-write-wins': lastWriteWins,
}
const NEEDED = ['create', 'read', 'update', 'remove'] as const

export function isOwnAdapter(name: string): boolean {
  return Object.hasOwn(OWN, name)
}

export async function chooseAdapter(name: string, options: AdapterOptions): Promise<Adapter> {
  const own = isOwnAdapter(name) ? OWN[name] : undefined
  return own ? own(options) : loadAdapter(name, options)
}

/** The file exports `adapter`: an adapter, or a function that makes one of the options. */
async function loadAdapter(file: string, options: AdapterOptions): Promise<Adapter> {
  if (!existsSync(file))
    throw unusable(`${file}: there is no such file; adapters with a name are ${Object.keys(OWN).join(', ')}`)
  const module = await importFile(file)
  const given: unknown =
    typeof module.adapter === 'function'
      ? await (module.adapter as (options: AdapterOptions) => unknown)(options)
      : module.adapter
  if (!isObject(given))
    throw unusable(`${file} does not export "adapter", an object or a function that makes it`)
  const missing = NEEDED.filter((verb) => typeof given[verb] !== 'function')
  if (missing.length > 0) throw unusable(`${file}: the adapter has no ${missing.join(', ')}`)
  return { name: path.basename(file), ...given } as unknown as Adapter
}

/** Code of others: an error in it is a fault of the file, not of this program. */
async function importFile(file: string): Promise<{ readonly adapter?: unknown }> {
  try {
    return (await import(pathToFileURL(path.resolve(file)).href)) as { readonly adapter?: unknown }
  } catch (error) {
    throw unusable(`${file} cannot be loaded: ${String(error)}`)
  }
}

function unusable(fault: string): ConfigError {
  return new ConfigError('The adapter cannot be used', [fault])
}
