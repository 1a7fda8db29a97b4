import { Refusal, StartFaults } from '../errors.js'
import { checkModel, type Model } from './model.js'
import { SYSTEM_MODELS } from './system.js'

/** Where a definition came from, for messages, and the definition as it was written. */
export interface Source {
  readonly file: string
  readonly definition: unknown
}

/** The models by name. */
export class Catalog {
  readonly #models: ReadonlyMap<string, Model>

  private constructor(models: readonly Model[]) {
    this.#models = new Map(models.map((model) => [model.name, model]))
  }

  /** Checks all definitions and refuses them with every fault named at once. */
  static from(sources: readonly Source[]): Catalog {
    const faults: string[] = []
    const models: Model[] = []
    const seen = new Map<string, string>()
    for (const { file, definition } of sources) {
      const model = checkModel(definition, (fault) => faults.push(`${file}: ${fault}`))
      if (!model) continue
      const folded = model.name.toLowerCase()
      const other = seen.get(folded)
      if (other !== undefined) faults.push(`${file}: ${model.name}: ${other} has a model of this name too`)
      if (folded.startsWith('verso.'))
        faults.push(`${file}: ${model.name}: names in verso.* belong to the service`)
      seen.set(folded, file)
      models.push(model)
    }
    if (faults.length > 0) throw new StartFaults('The models have faults', faults)
    return new Catalog(models)
  }

  /** What clients may name. */
  get(name: string): Model {
    const model = this.#models.get(name)
    if (!model) throw new Refusal('unknown-model', `There is no model "${name.slice(0, 200)}"`)
    return model
  }

  get models(): readonly Model[] {
    return [...this.#models.values()]
  }

  /** Everything that is stored: the models, and those of the service itself. */
  get stored(): readonly Model[] {
    return [...SYSTEM_MODELS, ...this.models]
  }
}
