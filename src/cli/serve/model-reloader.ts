// Serves changed models, and tells the user what happened.
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ConfigError } from '../../errors.js'
import type { Catalog } from '../../model/catalog/catalog.js'
import { previewSchema } from '../../store/schema/apply.js'
import { SAME_SETTINGS, type SchemaStep } from '../../store/schema/plan.js'
import { toDisplayPath } from '../models/model-files.js'
import { createCatalog, loadCatalogSources } from '../models/models.js'
import { loadRouteFiles, refuseRouteErrors } from '../models/route-files.js'
import { redactDatabaseUrl } from '../open.js'
import { formatSchemaPlan } from '../schema/schema.js'
import { describeFailure } from '../terminal/failure-text.js'
import { spellCommands } from '../terminal/invocation.js'
import type { LoadedCode, RunningServer } from './run.js'
import { summarizeNames } from './start-text.js'
import type { ModelWatcher } from './watch-models.js'

const MAX_LOADING_MS = 10_000

export interface ReloadOptions {
  readonly modelsPath: string
  readonly routesPath: string | undefined
  /** The database as the user named it. */
  readonly db: string
}

export class ModelReloader {
  /** Valid models that cannot be served, because data would be lost. */
  #refused: LoadedCode | undefined

  constructor(
    private readonly server: RunningServer,
    private readonly watcher: ModelWatcher,
    private readonly options: ReloadOptions,
  ) {}

  /** Loads and serves the models. Never rejects: after a failure the former models are served. */
  async reload(files: readonly string[]): Promise<void> {
    const names = files.map((file) => toDisplayPath(path.resolve(file)))
    process.stdout.write(`\nchanged: ${summarizeNames(names)}\n`)
    this.#refused = undefined
    await this.#run(async () => {
      const startMs = Date.now()
      const sources = await loadCatalogSources(this.options.modelsPath)
      const routes = await loadRouteFiles(this.options.routesPath)
      this.watcher.addImports([...sources.scripts, ...routes.scripts], startMs)
      const catalog = createCatalog(sources)
      refuseRouteErrors(routes)
      return { ...sources, catalog, routes }
    })
  }

  /** Serves the refused models as soon as nothing would be lost, for example after `verso schema --apply --drop`. */
  async retryRefused(): Promise<void> {
    const refused = this.#refused
    if (!refused || (await this.#findRefusals(refused.catalog)).length > 0) return
    this.#refused = undefined
    process.stdout.write('\nchanged: the tables\n')
    await this.#run(async () => Promise.resolve(refused))
  }

  async #run(load: () => Promise<LoadedCode>): Promise<void> {
    const startMs = performance.now()
    try {
      const loaded = await limitLoading(load())
      await this.#refuseLoss(loaded)
      printMigration(await this.server.serveModels(loaded), this.options.db)
      process.stdout.write(`reloaded in ${Math.round(performance.now() - startMs)} ms\n`)
    } catch (error) {
      process.stderr.write(`${spellCommands(describeFailure(error))}\n`)
      process.stdout.write('not reloaded: the former models and routes are still served\n')
    }
  }

  /** Plans the migration before any request has to wait for it. */
  async #refuseLoss(loaded: LoadedCode): Promise<void> {
    const plan = await previewSchema(this.server.app.db, loaded.catalog, [])
    if (plan.errors.length === 0) return
    this.#refused = loaded
    throw new ConfigError(
      'The database schema cannot be changed to these models without losing data',
      plan.errors.map((text) => text.replace(SAME_SETTINGS, this.#formatSettings())),
    )
  }

  /** The flags that make a printed command complete. A URL with a password is not printed. */
  #formatSettings(): string {
    const { modelsPath, db } = this.options
    const models = `--models ${quoteWord(toDisplayPath(path.resolve(modelsPath)))}`
    return redactDatabaseUrl(db) === db ? `${models} --db ${quoteWord(db)}` : `${models} (with the same --db)`
  }

  /** A database that cannot be read now is asked again later. */
  async #findRefusals(catalog: Catalog): Promise<readonly string[]> {
    try {
      return (await previewSchema(this.server.app.db, catalog, [])).errors
    } catch {
      return ['the tables cannot be read']
    }
  }
}

/** A model file may wait for something that never happens. */
async function limitLoading<T>(load: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const late = sleep(MAX_LOADING_MS, undefined, { signal: timer.signal }).then(() => {
    throw new ConfigError('The models cannot be loaded', [
      `a model file does not finish: it still runs after ${MAX_LOADING_MS / 1000} seconds`,
    ])
  })
  try {
    return await Promise.race([load, late])
  } finally {
    timer.abort()
    late.catch(() => undefined)
  }
}

/** Quotes a word for a shell, if it needs that. */
function quoteWord(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** Prints the steps as `verso schema` does. */
export function printMigration(steps: readonly SchemaStep[], db: string): void {
  const plan = { steps, notes: [], errors: [] }
  process.stdout.write(formatSchemaPlan(plan, redactDatabaseUrl(db), { apply: true }))
}
