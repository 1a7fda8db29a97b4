// Finds an adapter: a built-in one by its name, or one that a file exports.
import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../../../errors.js'
import { isObject } from '../../../model/values/value.js'
import type { Adapter, AdapterOptions } from './adapter.js'
import { createLastWriteWinsAdapter } from './last-write-wins.js'
import { createVersoAdapter } from './verso-adapter.js'

const BUILT_IN_ADAPTERS: Readonly<Record<string, (options: AdapterOptions) => Adapter>> = {
  verso: createVersoAdapter,
  'last-write-wins': createLastWriteWinsAdapter,
}
const REQUIRED_METHODS = ['create', 'read', 'update', 'remove'] as const

function isBuiltInAdapter(name: string): boolean {
  return Object.hasOwn(BUILT_IN_ADAPTERS, name)
}

export async function chooseAdapter(name: string, options: AdapterOptions): Promise<Adapter> {
  const create = isBuiltInAdapter(name) ? BUILT_IN_ADAPTERS[name] : undefined
  return create ? create(options) : loadAdapterFile(name, options)
}

/** The file exports `adapter`: an adapter, or a function that takes the options and returns one. */
async function loadAdapterFile(file: string, options: AdapterOptions): Promise<Adapter> {
  if (!existsSync(file))
    throw createAdapterError(
      `${file}: the file does not exist; the built-in adapters are ${Object.keys(BUILT_IN_ADAPTERS).join(', ')}`,
    )
  const module = await importAdapterModule(file)
  const adapter: unknown =
    typeof module.adapter === 'function'
      ? await (module.adapter as (options: AdapterOptions) => unknown)(options)
      : module.adapter
  if (!isObject(adapter))
    throw createAdapterError(`${file} must export "adapter": an object, or a function that returns one`)
  const missing = REQUIRED_METHODS.filter((verb) => typeof adapter[verb] !== 'function')
  if (missing.length > 0)
    throw createAdapterError(`${file}: the adapter lacks these methods: ${missing.join(', ')}`)
  return { name: path.basename(file), ...adapter } as unknown as Adapter
}

/** An error in the user's code is reported as an error of that file. */
async function importAdapterModule(file: string): Promise<{ readonly adapter?: unknown }> {
  try {
    return (await import(pathToFileURL(path.resolve(file)).href)) as { readonly adapter?: unknown }
  } catch (error) {
    throw createAdapterError(`${file} cannot be loaded: ${String(error)}`)
  }
}

function createAdapterError(message: string): ConfigError {
  return new ConfigError('The adapter cannot be used', [message])
}
