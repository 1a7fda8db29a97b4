// Loads routes and schedules from TypeScript and JavaScript files.
import { statSync } from 'node:fs'
import path from 'node:path'
import { ConfigError } from '../../errors.js'
import { isCallable, isDefinedRoutes, type RoutePlugin } from '../../http/ext/route-plugin.js'
import { isSchedule, type Schedule } from '../../service/background/schedule.js'
import { ModelScriptLoader, type FileExports } from './code-models.js'
import { findModelFiles, toDisplayPath, type ModelFileList } from './model-files.js'

const SCRIPT_EXTENSIONS = ['.ts', '.mts', '.js', '.mjs']
const NO_ROUTES_ADVICE =
  'exports neither routes nor a schedule; write: export const reports = defineRoutes(async (fastify) => { … }), or: export default async (fastify) => { … }, or move the file out of the folder of routes'

export interface LoadedRoutes {
  readonly plugins: readonly RoutePlugin[]
  readonly schedules: readonly Schedule[]
  readonly errors: readonly string[]
  /** Absolute paths of the scripts that were evaluated. Routes may import some from other folders. */
  readonly scripts: readonly string[]
}

export const NO_ROUTES: LoadedRoutes = { plugins: [], schedules: [], errors: [], scripts: [] }

/** Loads the routes of a file or folder. Throws one error that lists all problems. */
export async function loadRoutes(routesPath: string | undefined): Promise<LoadedRoutes> {
  const loaded = await loadRouteFiles(routesPath)
  refuseRouteErrors(loaded)
  return loaded
}

export function refuseRouteErrors({ errors }: LoadedRoutes): void {
  if (errors.length > 0) throw new ConfigError('The routes cannot be loaded', errors)
}

/**
 * Loads all readable files and returns the errors of the rest. Call it after the models were loaded: modules that models and routes import are
 * evaluated once.
 */
export async function loadRouteFiles(routesPath: string | undefined): Promise<LoadedRoutes> {
  if (routesPath === undefined) return NO_ROUTES
  const root = path.resolve(routesPath)
  const { files, errors } = findRouteFiles(root)
  const loader = new ModelScriptLoader(files[0] === root ? path.dirname(root) : root, true)
  const plugins = new Set<RoutePlugin>()
  const schedules = new Set<Schedule>()
  const problems = [...errors]
  for (const file of files) {
    const reportError = (what: string) => problems.push(`${toDisplayPath(file)}: ${what}`)
    const exported = await loader.importFile({ file, reportError })
    if (exported === undefined) continue
    const ownPlugins = listPlugins(exported)
    const ownSchedules = Object.values(exported).filter(isSchedule)
    for (const plugin of ownPlugins) plugins.add(plugin)
    for (const schedule of ownSchedules) schedules.add(schedule)
    if (ownPlugins.length + ownSchedules.length === 0) reportError(NO_ROUTES_ADVICE)
  }
  if (files.length === 0 && problems.length === 0)
    problems.push(`${toDisplayPath(root)}: the folder has no ${SCRIPT_EXTENSIONS.join(', ')} file`)
  return { plugins: [...plugins], schedules: [...schedules], errors: problems, scripts: loader.listFiles() }
}

function findRouteFiles(root: string): Pick<ModelFileList, 'files' | 'errors'> {
  const stats = statSync(root, { throwIfNoEntry: false })
  const fail = (what: string) => ({ files: [], errors: [`${toDisplayPath(root)}: ${what}`] })
  if (!stats) return fail('the file or folder does not exist; check --routes')
  if (!stats.isDirectory() && !isScript(root))
    return fail(`the name of a file with routes must end in ${SCRIPT_EXTENSIONS.join(', ')}`)
  const { files, errors } = findModelFiles(root)
  return { files: files.filter(isScript), errors }
}

function isScript(file: string): boolean {
  return SCRIPT_EXTENSIONS.includes(path.extname(file))
}

/** Any other function is not called: it may be for other files. */
function listPlugins(exported: FileExports): readonly RoutePlugin[] {
  return Object.entries(exported)
    .filter(([name, value]) => isDefinedRoutes(value) || (name === 'default' && isCallable(value)))
    .map(([, value]) => value as RoutePlugin)
}
