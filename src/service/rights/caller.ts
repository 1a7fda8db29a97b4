import type { Catalog } from '../../model/catalog.js'
import type { Rights } from '../../model/rights.js'
import type { Sight } from '../../model/sight.js'
import type { Actor } from '../actor.js'

/** Who acts, and what they may do. */
export interface Caller {
  /** The service itself, and the command line, act as nobody. */
  readonly actor: Actor | null
  /** Undefined for those who may do everything. */
  readonly rights: Rights | undefined
  /** The names of their roles. */
  readonly roles: readonly string[]
  /** What it was worked out under; the service itself has none. */
  readonly epoch?: number | undefined
}

/** The service itself. */
export const SERVICE: Caller = { actor: null, rights: undefined, roles: [] }

/** The models as the caller sees them. */
export function sightOf(app: { readonly catalog: Catalog }, { rights }: Caller): Sight {
  return rights ?? app.catalog
}
