// Checks the options of createVerso. Reports all problems at once, before the database is opened.
import { ConfigError } from '../errors.js'
import type { RoutePlugin } from '../http/ext/route-plugin.js'
import { DEFAULT_HTTP_SETTINGS, type HttpSettings } from '../http/settings.js'
import { Catalog } from '../model/catalog/catalog.js'
import type { ModelSource } from '../model/catalog/model-sources.js'
import type { ReportError } from '../model/definition/check-field-options.js'
import { isModelExtension } from '../model/definition/extend-model.js'
import { didYouMean } from '../model/values/did-you-mean.js'
import { isObject } from '../model/values/value.js'
import { DEFAULT_SETTINGS, type Settings } from '../service/context/settings.js'
import { checkSchedules, type Schedule } from '../service/background/schedule.js'
import type { VersoOptions } from './verso.js'

const OPTION_NAMES: readonly (keyof VersoOptions)[] = [
  'db',
  'models',
  'hooks',
  'routes',
  'schedules',
  'settings',
  'http',
  'log',
  'clock',
  'runsBackgroundWork',
]

export interface CheckedOptions {
  readonly catalog: Catalog
  readonly settings: Partial<Settings>
  readonly http: Partial<HttpSettings>
  readonly routes: readonly RoutePlugin[]
  readonly schedules: readonly Schedule[]
}

/** Throws one ConfigError that lists all problems of the options and of the models. */
export function checkVersoOptions(options: VersoOptions): CheckedOptions {
  const given: unknown = options
  if (!isObject(given)) throw createOptionsError(['write createVerso({ db, models: [Task] })'])
  const errors: string[] = []
  const report: ReportError = (error) => errors.push(error)
  reportUnknownNames('', given, OPTION_NAMES, report)
  const { db, runsBackgroundWork } = given
  if (db !== undefined && typeof db !== 'string')
    report('db must be a string such as "sqlite:data/verso.db" or "postgres://user:password@host/database"')
  if (runsBackgroundWork !== undefined && typeof runsBackgroundWork !== 'boolean')
    report('runsBackgroundWork must be true or false')
  const { db: defaultDb, ...defaultSettings } = DEFAULT_SETTINGS
  const settings = checkSettings('settings', given['settings'], defaultSettings, report)
  const http = checkSettings('http', given['http'], DEFAULT_HTTP_SETTINGS, report)
  const sources = new Map<unknown, ModelSource>()
  addSources('models', given['models'], sources, report)
  addSources('hooks', given['hooks'] ?? [], sources, report)
  const routes = listRoutes(given['routes'], report)
  const schedules = listSchedules(given['schedules'] ?? [], report)
  const catalog = collectErrors(() => Catalog.from([...sources.values()]), report)
  if (errors.length > 0 || !catalog) throw createOptionsError(errors)
  return { catalog, settings: { ...settings, db: options.db ?? defaultDb }, http, routes, schedules }
}

function createOptionsError(errors: readonly string[]): ConfigError {
  return new ConfigError('The options of createVerso are invalid. Nothing was opened', errors)
}

/** Options at the wrong place, or of earlier releases, and what to write instead. */
const ADVICE: Readonly<Record<string, string>> = {
  'settings.db': 'write createVerso({ db, … })',
  deliversWebhooks: 'write runsBackgroundWork',
  ...Object.fromEntries(
    Object.keys(DEFAULT_SETTINGS).map((name) => [name, `write settings: { ${name}: … }`]),
  ),
  ...Object.fromEntries(
    Object.keys(DEFAULT_HTTP_SETTINGS).map((name) => [name, `write http: { ${name}: … }`]),
  ),
}

function reportUnknownNames(
  path: string,
  given: object,
  known: readonly string[],
  report: ReportError,
): void {
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    const at = `${path}${name}`
    const advice = Object.hasOwn(ADVICE, at) ? `: ${ADVICE[at] ?? ''}` : didYouMean(name, known)
    report(`${at}: there is no such option${advice || `. The options are ${known.join(', ')}`}`)
  }
}

/** Returns the settings that have a value: undefined stands for the default. */
function checkSettings<S extends object>(
  name: string,
  given: unknown,
  defaults: S,
  report: ReportError,
): Partial<S> {
  if (given === undefined) return {}
  if (!isObject(given)) {
    report(`${name} must be an object such as { ${Object.keys(defaults)[1] ?? ''}: … }`)
    return {}
  }
  reportUnknownNames(`${name}.`, given, Object.keys(defaults), report)
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  for (const [key, value] of entries) {
    const expected = describeType(Object.hasOwn(defaults, key) ? defaults[key as keyof S] : undefined)
    if (expected && !expected.isValid(value)) report(`${name}.${key} must be ${expected.text}`)
  }
  return Object.fromEntries(entries) as Partial<S>
}

interface ExpectedType {
  readonly text: string
  readonly isValid: (value: unknown) => boolean
}

/** The type that a default value stands for. Settings of several types have none. */
function describeType(value: unknown): ExpectedType | undefined {
  if (typeof value === 'number')
    return {
      text: 'a number of 0 or more',
      isValid: (given) => typeof given === 'number' && Number.isFinite(given) && given >= 0,
    }
  if (value === true) return { text: 'true or false', isValid: (given) => typeof given === 'boolean' }
  if (Array.isArray(value))
    return {
      text: 'a list of strings',
      isValid: (given) => Array.isArray(given) && given.every((each) => typeof each === 'string'),
    }
  return undefined
}

/** Names each model by its place in the list, for messages. A model or an extension that is listed twice counts once. */
function addSources(
  option: 'models' | 'hooks',
  given: unknown,
  sources: Map<unknown, ModelSource>,
  report: ReportError,
): void {
  if (!Array.isArray(given)) {
    report(`${option} must be a list, such as ${option}: ${option === 'models' ? '[Task]' : '[taskRules]'}`)
    return
  }
  for (const [index, value] of (given as readonly unknown[]).entries()) {
    const file = `${option}[${index}]`
    const problem = option === 'models' ? findModelProblem(value) : findHooksProblem(value)
    const source = isModelSource(value) ? value : { file, definition: value }
    if (problem !== undefined) report(`${file}: ${problem}`)
    else if (!sources.has(source.definition)) sources.set(source.definition, source)
  }
}

function isModelSource(value: unknown): value is ModelSource {
  return isObject(value) && typeof value['file'] === 'string' && Object.hasOwn(value, 'definition')
}

const MODEL_ADVICE = 'list what defineModel or extendModel returned, such as models: [Task]'

function findModelProblem(value: unknown): string | undefined {
  if (value === undefined) return `it is undefined. Check the name of the import, and for circular imports`
  if (typeof value === 'string')
    return `"${value}" is a string. createVerso does not load files: import the models, and ${MODEL_ADVICE}`
  if (typeof value === 'function') return `this is a function: ${MODEL_ADVICE}`
  if (!isObject(value)) return `this is not a model: ${MODEL_ADVICE}`
  if (isModelSource(value) || isModelExtension(value) || 'name' in value || 'fields' in value)
    return undefined
  const holdsModels = Object.values(value).some((each) => isObject(each) && 'fields' in each)
  return holdsModels
    ? 'this is an object of models: list its values, such as models: Object.values(models)'
    : `this is not a model, because it has neither a name nor fields: ${MODEL_ADVICE}`
}

function findHooksProblem(value: unknown): string | undefined {
  if (isModelExtension(value)) return undefined
  return value === undefined
    ? 'it is undefined. Check the name of the import, and for circular imports'
    : 'list what defineHooks(Task, { … }) or extendModel returned'
}

function listRoutes(given: unknown, report: ReportError): readonly RoutePlugin[] {
  const plugins: readonly unknown[] = given === undefined ? [] : [given].flat()
  for (const [index, plugin] of plugins.entries())
    if (typeof plugin !== 'function')
      report(`routes[${index}]: list functions that add routes, such as async (fastify) => { … }`)
  return plugins as readonly RoutePlugin[]
}

function listSchedules(given: unknown, report: ReportError): readonly Schedule[] {
  if (!Array.isArray(given)) {
    report("schedules must be a list, such as schedules: [every('1h', 'name', async (call) => …)]")
    return []
  }
  collectErrors(() => {
    checkSchedules(given)
  }, report)
  return given as readonly Schedule[]
}

/** Adds the errors of a check to those of the others. */
function collectErrors<T>(check: () => T, report: ReportError): T | undefined {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const each of error.errors) report(each)
    return undefined
  }
}
